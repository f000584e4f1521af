"""What tokens spell."""

from hypothesis import given
from hypothesis import strategies as st

from engine.models.vocabulary import Vocabulary

SPELLED = st.lists(st.text("ab \xff", max_size=4).map(lambda text: text.encode("latin-1")), min_size=1, max_size=20)


@given(SPELLED, st.text("ab \xff", min_size=1, max_size=4).map(lambda text: text.encode("latin-1")))
def test_tokens_that_agree_with_a_head_begin_with_it_or_are_how_it_begins(spelled: list[bytes], head: bytes):
    found = Vocabulary(spelled).agreeing(head)
    assert {spelled[token] for token in found} == {
        each for each in spelled if each and (each.startswith(head) or head.startswith(each))
    }
    assert all(token in found for token, each in enumerate(spelled) if each.startswith(head))
