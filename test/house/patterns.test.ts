import { describe, expect, test } from 'vitest';
import { isLong } from '../figures/figure.ts';
import { collectPatterns } from './collect-patterns.ts';
import { judgedPatterns, judgePattern, type Verdict } from './judge-patterns.ts';

/**
 * Every pattern takes time in proportion to its text, from any source: a body may have a mebibyte, the head of a
 * request 16 KiB, an answer of a node or a provider a mebibyte.
 *
 * `judged-patterns.json` contains the verdicts of recheck, which takes half a minute for all; a pattern that is not in it
 * is judged here. `TEST_LONG=1` judges all of them again.
 */
const { patterns, computed } = collectPatterns();
const judged = judgedPatterns();

/** Patterns that take more than linear time on a text that cannot reach them, with the longest text that can. */
const reviewed: readonly { readonly part: string; readonly atMost: number; readonly why: string }[] = [
  {
    part: '^alter table "(\\w+)" .*',
    atMost: 1_000,
    why: 'reads the statements of our own migrations only',
  },
  {
    part: '^(?:https?|ftp):\\/\\/(?:\\S+',
    atMost: 2_048,
    why: 'the format `url` of ajv-formats, which no schema of ours has',
  },
];

/** Patterns that are put together while the program runs. */
const reviewedComputed: readonly { readonly file: string; readonly why: string }[] = [
  { file: 'src/sandbox/pages.ts', why: 'a constant path' },
  { file: 'src/server/brand.ts', why: 'our own words, without repetitions' },
  { file: 'src/generated/validator-runtime.js', why: 'the format `regex`, which only compiles' },
  { file: 'src/sandbox/generated/validator-runtime.js', why: 'the format `regex`, which only compiles' },
  { file: 'src/tools/client/arazzo/document.ts', why: 'only compiles' },
  { file: 'src/web/docs/highlight.ts', why: 'constant words; reads our own examples, in a browser' },
  { file: 'src/web/docs/search.ts', why: 'words of the index, escaped; runs in the browser of the reader' },
  {
    file: 'src/tools/client/arazzo/run-document.ts',
    why: 'a criterion of a scenario: runs with a limit of time',
  },
];

const LENGTH = 32_768;
const BUDGET_MS = 20;

describe('every pattern', () => {
  test('every pattern is found', () => {
    expect(patterns.size).toBeGreaterThan(300);
    expect([...patterns.keys()]).toContain('/^0x([0-9a-fA-F]{2})+$/u');
  });

  test('every pattern takes linear time, as recheck judges', async () => {
    const faults: string[] = [];
    for (const [pattern, files] of patterns) {
      const verdict = (isLong ? undefined : judged[pattern]) ?? (await judgePattern(pattern));
      if (verdict.status === 'safe' || isReviewed(pattern)) continue;
      faults.push(`${pattern} in ${files.join(', ')}: ${verdict.status} ${attackText(verdict, 20)}`);
    }
    expect(faults).toEqual([]);
  });

  test.runIf(isLong)(
    'every pattern has its verdict in the file: run `node test/house/judge-patterns.ts`',
    () => {
      expect(Object.keys(judged)).toEqual([...patterns.keys()].sort());
    },
  );

  test(`every pattern takes at most ${BUDGET_MS} ms for hostile texts of ${LENGTH} characters`, () => {
    const faults = [...patterns].flatMap(([pattern, files]) => {
      const length = reviewed.find(({ part }) => pattern.includes(part))?.atMost ?? LENGTH;
      const slow = slowestText(pattern, judged[pattern], length);
      return slow === undefined ? [] : [`${pattern} in ${files.join(', ')}: ${slow}`];
    });
    expect(faults).toEqual([]);
  });

  test('every pattern that is computed is listed with a reason', () => {
    const files = computed.map((found) => found.slice(0, found.indexOf(':')));
    expect(files.sort()).toEqual(reviewedComputed.map(({ file }) => file).sort());
  });

  test('every pattern that was reviewed still exists', () => {
    const all = [...patterns.keys()];
    expect(reviewed.filter(({ part }) => !all.some((pattern) => pattern.includes(part)))).toEqual([]);
  });
});

describe('the measurement finds', () => {
  test.each([
    { pattern: /\/+$/, length: 8_192 },
    { pattern: /\{([^}]+)\}/g, length: 8_192 },
    {
      pattern: /^\s*-----BEGIN PUBLIC KEY-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END PUBLIC KEY-----\s*$/,
      length: 512,
    },
    { pattern: /execution reverted|vm execution error.*revert/i, length: LENGTH },
    { pattern: /^(a+)+$/, length: 24 },
  ])('the measurement finds: $pattern', ({ pattern, length }) => {
    expect(slowestText(String(pattern), undefined, length)).toBeDefined();
  });
});

function isReviewed(pattern: string): boolean {
  return reviewed.some(({ part }) => pattern.includes(part));
}

/** A text for which the pattern exceeds the budget, also when it is tried again. */
function slowestText(pattern: string, verdict: Verdict | undefined, length: number): string | undefined {
  const end = pattern.lastIndexOf('/');
  const compiled = new RegExp(pattern.slice(1, end), pattern.slice(end + 1));
  // Short texts first, for which exponential and cubic patterns still end.
  for (const size of [24, 512, length]) {
    const texts = hostileTexts(compiled.source, size);
    if (verdict?.attack !== undefined) texts.push(attackText(verdict, size));
    for (const text of texts) {
      const tookMs = fastestMs(compiled, text);
      if (tookMs > BUDGET_MS) return `${tookMs.toFixed(1)} ms for ${JSON.stringify(text.slice(0, 60))}…`;
    }
  }
  return undefined;
}

function fastestMs(pattern: RegExp, text: string): number {
  let fastest = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 4 && fastest > BUDGET_MS; attempt += 1) {
    // The time of this thread, so that a loaded machine does not count.
    const startedAt = process.threadCpuUsage();
    // Unlike `test`, it goes on after a match.
    text.replace(pattern, '');
    const { user, system } = process.threadCpuUsage(startedAt);
    fastest = Math.min(fastest, (user + system) / 1000);
  }
  return fastest;
}

/** Each character and each word of the pattern, repeated after each of its words, with an end that matches nothing. */
function hostileTexts(source: string, length: number): string[] {
  const plain = source.replaceAll(/\\[dwsDWSbB]|\\[ux][0-9a-f{}]*/gi, '\n').replaceAll('\\', '');
  const words = [...new Set(plain.match(/[\w \-:/"@]{2,}/g) ?? [])].slice(0, 6);
  const characters = new Set([...' \t\n0aA-/._"@=', ...plain.replaceAll(/\w/g, '')]);
  const fillers = [...[...characters].slice(0, 24), ...words];
  const prefixes = words.slice(0, 3).flatMap((word) => [word, `${word}=`]);
  return ['', ...prefixes].flatMap((prefix) =>
    fillers.map((filler) => `${`${prefix}${filler.repeat(length / filler.length)}`.slice(0, length)}\u0000`),
  );
}

function attackText({ attack }: Verdict, length: number): string {
  if (attack === undefined) return '';
  const { pumps, suffix } = attack;
  const pumped = pumps.map(
    ({ prefix, pump }) => prefix + pump.repeat(Math.ceil(length / pumps.length / pump.length)),
  );
  return pumped.join('') + suffix;
}
