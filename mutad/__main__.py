"""The command `mutad`, as `python -m mutad`."""

from __future__ import annotations


def main() -> None:
    from mutad.bisect import entry

    entry()


if __name__ == "__main__":
    main()
