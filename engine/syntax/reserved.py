"""Words that are never names, by language; words with a meaning only in some places are left out."""

from __future__ import annotations


def _words(text: str) -> frozenset[bytes]:
    return frozenset(text.encode().split())


_SCRIPT = _words(
    """
    break case catch class const continue debugger delete do else enum export extends false finally for function if
    import in instanceof let new null return super switch this throw true try typeof var void while with
    """
)
_C = _words(
    """
    auto break case char const continue default do double else enum extern float for goto if int long register return
    short signed sizeof static struct switch typedef union unsigned void volatile while
    """
)

RESERVED: dict[str, frozenset[bytes]] = {
    "python": _words(
        """
        and as assert async await break class continue def del elif else except finally for from global if import in is
        lambda nonlocal not or pass raise return try while with yield None True False
        """
    ),
    "javascript": _SCRIPT,
    "typescript": _SCRIPT - {b"import"},
    "tsx": _SCRIPT - {b"import"},
    "go": _words(
        """
        break case chan const continue default defer else fallthrough for func go goto if import interface map package
        range return select struct switch type var
        """
    ),
    "rust": _words(
        """
        as break const continue else enum extern fn for if impl in let loop match mod move mut pub ref return static
        struct trait type unsafe use where while
        """
    ),
    "c": _C,
    "cpp": _C
    | _words(
        """
        bool catch class constexpr decltype delete explicit friend inline mutable namespace new private
        protected public template throw try typename using virtual
        """
    ),
    "java": _words(
        """
        abstract assert boolean break byte case catch char class const continue default do double else enum extends
        final finally float for goto if implements import instanceof int interface long native new package private
        protected public return short static strictfp switch synchronized throw throws transient try void volatile while
        """
    ),
    "csharp": _words(
        """
        abstract as base bool break byte case catch char checked class const continue decimal default delegate do double
        else enum event explicit extern finally fixed float for foreach goto if implicit in int interface internal is
        lock long namespace new operator out override params private protected public readonly ref return sbyte sealed
        short sizeof stackalloc static string struct switch throw try typeof uint ulong unchecked unsafe ushort using
        virtual void volatile while
        """
    ),
    "lua": _words(
        "and break do else elseif end for function if in local not or repeat return then until while true false nil"
    ),
    "ruby": _words(
        """
        alias and begin break case class def do else elsif end ensure for if in module next not or redo rescue retry
        return then undef unless until when while yield
        """
    ),
}
