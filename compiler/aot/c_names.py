"""Names that C has given away: what no exported function is called, and no parameter."""

from __future__ import annotations

import re

_WORDS = (
    "alignas alignof and asm auto bool break case catch char class const constexpr continue default "
    "delete do double dynamic_cast else enum explicit export extern false float for friend goto if "
    "inline int long mutable namespace new not noexcept nullptr operator or private protected public "
    "register reinterpret_cast requires restrict return short signed sizeof static static_assert "
    "static_cast struct switch template this throw true try typedef typeid typename typeof union "
    "unsigned using virtual void volatile wchar_t while xor"
)
_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2 expm1 "
    "fabs fdim finite floor fma fmax fmin fmod frexp gamma hypot ilogb j0 j1 jn ldexp lgamma llrint llround "
    "log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo "
    "rint round roundeven scalb scalbln scalbn significand sin sincos sinh sqrt tan tanh tgamma trunc "
    "y0 y1 yn"
)
_REST = (
    "abort abs access alarm atexit atof atoi atol bcmp bcopy bsearch bzero calloc chdir chmod clock "
    "close connect ctime difftime div dup environ execve exit ffs fclose feof ferror fflush fgets fileno "
    "fopen fork fprintf fputs fread free fscanf fseek ftell fwrite getc getchar getenv getpid gets "
    "gmtime index isalpha isatty isdigit isinf isnan kill labs ldiv link listen llabs lldiv localtime "
    "longjmp lseek main malloc memchr memcmp memcpy memmove memset mktime mmap munmap nice open "
    "optarg optind pause perror pipe poll printf putc putchar puts qsort raise rand random read realloc "
    "recv remove rename rewind rindex scanf select send setjmp signal sleep snprintf socket sprintf "
    "srand srandom stat strcat strchr strcmp strcpy strdup strerror strlen strncmp strncpy strsignal "
    "strstr strtod strtok strtol swab sync syscall system tempnam time times tmpfile tolower toupper "
    "truncate tzname tzset ungetc unlink vprintf wait write"
)
KEYWORDS = frozenset(_WORDS.split())
"""Of C and C++."""
LIBRARY = frozenset([f"{n}{end}" for n in _MATH.split() for end in ("", "f", "l")] + _REST.split())
"""Functions of libm and the C library: a library that has one of its own takes it from whole programs."""


_OWN = re.compile(r"strerror|allocator|aligned|[a-z]+\d*_\d+(_of)?")
"""What the header itself declares, behind the library's name."""


_OF_DEVICES = frozenset(["device", "open", "close", "cublas", "allocate", "release"])
"""And in libraries that launch kernels."""


def is_the_librarys(symbol: str, library: str, *, launches: bool = False) -> bool:
    """Whether the header of this library gives the name to something of its own."""
    if not symbol.startswith(f"{library}_"):
        return False
    own = symbol.removeprefix(f"{library}_")
    return _OWN.fullmatch(own) is not None or (launches and own in _OF_DEVICES)


def refused_symbol(symbol: str) -> str | None:
    """Why no C function can have this name."""
    if not symbol.isascii():
        return "is no name in C"
    if symbol in KEYWORDS:
        return "is a word of C"
    if symbol in LIBRARY:
        return "is a function of the C library"
    return None
