/** The part of a list that is drawn: from index `first` up to but not including `end`. */
export interface VisibleRows {
  readonly first: number;
  readonly end: number;
}

/** The number of rows that are drawn above and below the visible ones, so that scrolling shows no gap. */
const MARGIN = 10;

/**
 * Returns the rows to draw of a list with `count` rows that is scrolled down by `top` pixels in a window of `height`
 * pixels.
 */
export function visibleRows(list: {
  readonly count: number;
  readonly rowHeight: number;
  readonly top: number;
  readonly height: number;
}): VisibleRows {
  const { count, rowHeight, top, height } = list;
  const first = Math.floor(Math.max(0, top) / rowHeight) - MARGIN;
  const end = Math.ceil((Math.max(0, top) + height) / rowHeight) + MARGIN;
  const limited = (index: number): number => Math.min(count, Math.max(0, index));
  return { first: limited(first), end: limited(end) };
}

/** Returns the row to which a key moves, or undefined for other keys. `current` is -1 if no row is active. */
export function rowAfterKey(
  key: string,
  list: { readonly current: number; readonly count: number; readonly pageRows: number },
): number | undefined {
  const { current, count, pageRows } = list;
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: current + 1,
    ArrowUp: current - 1,
    PageDown: current + pageRows,
    PageUp: current - pageRows,
    Home: 0,
    End: count - 1,
  };
  const target = Object.hasOwn(steps, key) ? steps[key] : undefined;
  return target === undefined || count === 0 ? undefined : Math.min(count - 1, Math.max(0, target));
}

/**
 * Returns the scroll position at which a row is visible below the heading. Returns `top` if the row is already
 * visible.
 */
export function topShowing(
  row: number,
  list: { readonly rowHeight: number; readonly top: number; readonly height: number },
): number {
  const { rowHeight, top, height } = list;
  const start = row * rowHeight;
  if (start < top) return start;
  return Math.max(top, start + rowHeight - height);
}
