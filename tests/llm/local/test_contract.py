"""The contract of all backends, run on the models in this process.

`test_in_process` replaces two of its tests: a prefill has to be tokenized like the reply that it continues, and a choice that
is a prefix of another is refused.
"""

import pytest

from tests.llm.local.test_in_process import BACKENDS, build  # noqa: F401 - a fixture
from tests.support.llm_contract import (  # noqa: F401 - the shared tests
    asker,
    test_a_label_on_a_line_of_its_own_is_as_good,
    test_a_reply_ends_at_max_tokens,
    test_a_reply_is_text_with_its_reason_and_tokens,
    test_a_stop_string_is_cut_off,
    test_a_system_prompt_is_heard,
    test_choices_have_probabilities_and_the_likeliest_is_the_text,
    test_drawn_choices_follow_their_probabilities,
    test_replies_keep_the_order_of_the_requests,
    test_the_same_seed_gives_the_same_reply,
)


@pytest.fixture(params=BACKENDS)
def llm(request, build, model_folder):  # noqa: F811
    return asker(build(request.param, model_folder()))
