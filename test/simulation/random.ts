import { hash } from 'node:crypto';

/** Every decision of a simulation is drawn from one of these. */
export interface Random {
  /** A fraction of 1. */
  fraction(): number;
  /** An integer from 0 to `end` - 1. */
  below(end: number): number;
  between(least: number, most: number): number;
  chance(probability: number): boolean;
  pick<T>(list: readonly T[]): T;
  /** One of the entries, as often as its weight says. */
  weighted<T>(entries: readonly (readonly [weight: number, value: T])[]): T;
}

/** The generator sfc32 (Chris Doty-Humphrey, PractRand), started from the SHA-256 of a text. */
export function randomOf(seed: string): Random {
  const start = Buffer.from(hash('sha256', seed), 'hex');
  let [a, b, c, counter] = [0, 4, 8, 12].map((at) => start.readUInt32LE(at)) as [
    number,
    number,
    number,
    number,
  ];
  const next = (): number => {
    const result = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + result) | 0;
    return result >>> 0;
  };
  const fraction = (): number => next() / 2 ** 32;
  const below = (end: number): number => Math.floor(fraction() * end);
  return {
    fraction,
    below,
    between: (least, most) => least + below(most - least + 1),
    chance: (probability) => fraction() < probability,
    pick: (list) => list[below(list.length)]!,
    weighted(entries) {
      let left = fraction() * entries.reduce((sum, [weight]) => sum + weight, 0);
      for (const [weight, value] of entries) {
        left -= weight;
        if (left < 0) return value;
      }
      return entries.at(-1)![1];
    },
  };
}
