import type { Tone } from '../names.ts';

/** The height of the highest bar, in units of the SVG. */
export const BARS_HEIGHT = 72;

/** A colored segment of a bar. Its length follows `count`. */
export interface BarPart {
  readonly tone: Tone | 'accent';
  readonly count: number;
}

export interface Bar {
  /** The label of the bar, such as `12:05`. */
  readonly title: string;
  readonly parts: readonly BarPart[];
  /** The label on the axis where the bar begins. Most bars have none. */
  readonly mark?: string;
}

export function totalOf({ parts }: Bar): number {
  return parts.reduce((sum, { count }) => sum + count, 0);
}

/** Stacks the parts of a bar. A part whose count is not 0 is at least 2 px high. */
export function stack(parts: readonly BarPart[], most: number) {
  let top = BARS_HEIGHT;
  return parts
    .filter(({ count }) => count > 0)
    .map(({ tone, count }) => {
      const height = Math.max(2, (count / most) * (BARS_HEIGHT - 4));
      top -= height;
      return { tone, y: top, height };
    });
}
