import { describe, expect, test } from 'vitest';
import { type Bounds, type HonestCall, judge, type Observations, type Rule } from './judge.ts';

// Each condition can fail a run, and does not fail one without it.

const bounds: Bounds = {
  ...{ slowdown: 3, floorMs: 1_000, megabytes: { server: 500 }, stallCpuMs: 1_000, stallMs: 10_000 },
  attackers: ['outsider'],
};

function call(fromMs: number, tookMs: number, more: Partial<HonestCall> = {}): HonestCall {
  const times = { fromMs, untilMs: fromMs + tookMs };
  return { kind: 'read', isAttacked: true, refusals: [], status: 200, text: '', ...times, ...more };
}

const good: Observations = {
  faults: [],
  cuts: [{ what: 'all connections', where: 'environment', fromMs: 50_000, untilMs: 51_000 }],
  calls: [...Array(100).keys()].map((n) => call(100 * n, 300, { isAttacked: n >= 50 })),
  probes: [{ process: 'server', fromMs: 0, untilMs: 900, cpuMs: 900 }],
  memory: [{ process: 'server', megabytes: 500 }],
  attacks: new Map([['outsider: absolute form', 1]]),
};
const rulesOf = (seen: Partial<Observations>): Rule[] =>
  judge({ ...good, ...seen }, bounds).map(({ rule }) => rule);
const calls = (...more: HonestCall[]) => ({ calls: [...good.calls, ...more] });
const refusal = (fromMs: number, isRepeatable = true) => ({
  ...{ fromMs, untilMs: fromMs + 10, text: '503', isRepeatable },
});

test('a good run has no fault', () => {
  expect(rulesOf({})).toEqual([]);
});

test('what was seen to be wrong at once is a fault', () => {
  const faults = [{ rule: 'something unsigned was signed', text: 'another receiver' }] as const;
  expect(rulesOf({ faults })).toEqual(['something unsigned was signed']);
});

describe('speed', () => {
  test.each([
    ['at the floor', 1_000, []],
    ['above the floor', 1_001, ['too slow']],
  ])('a p99 %s', (_name, tookMs, rules) => {
    expect(rulesOf(calls(call(20_000, tookMs)))).toEqual(rules);
  });

  test('three times the p99 alone is allowed, more is not', () => {
    const slow = good.calls.map((each) => ({ ...each, untilMs: each.fromMs + 600 }));
    expect(rulesOf({ calls: [...slow, call(20_000, 1_800)] })).toEqual([]);
    expect(rulesOf({ calls: [...slow, call(20_000, 1_801)] })).toEqual(['too slow']);
  });

  test('a cut excuses what runs during it, and one at the node only transfers', () => {
    expect(rulesOf(calls(call(50_100, 9_000)))).toEqual([]);
    const cuts = [{ what: 'no answer', where: 'node', fromMs: 20_000, untilMs: 21_000 } as const];
    expect(rulesOf({ cuts, ...calls(call(20_000, 9_000)) })).toEqual(['too slow']);
    expect(rulesOf({ cuts, ...calls(call(20_000, 9_000, { kind: 'transfer' })) })).toEqual([]);
  });
});

test.each<[string, HonestCall, Rule[]]>([
  ['503 while something was cut', call(50_100, 500, { refusals: [refusal(50_100)] }), []],
  [
    'an answer without Retry-After',
    call(50_100, 500, { refusals: [refusal(50_100, false)] }),
    ['refused while nothing was cut'],
  ],
  [
    '503 while nothing was cut',
    call(20_000, 500, { refusals: [refusal(20_000)] }),
    ['refused while nothing was cut'],
  ],
  ['401', call(20_000, 10, { status: 401 }), ['refused while nothing was cut']],
])('the honest client gets %s', (_name, bad, rules) => {
  expect(rulesOf(calls(bad))).toEqual(rules);
});

test.each([
  ['works on', 1_500, 1_001, 20_000, ['a stalled event loop']],
  ['only waits for the processor', 9_000, 50, 20_000, []],
  ['does not answer at all', 10_001, 0, 20_000, ['a stalled event loop']],
  ['does not answer because it was killed', 10_001, 0, 50_000, []],
])('a thread that %s', (_name, tookMs, cpuMs, fromMs, rules) => {
  const probe = { process: 'server', fromMs, untilMs: fromMs + tookMs, cpuMs };
  expect(rulesOf({ probes: [probe] })).toEqual(rules);
});

test('a process above its bound, and an attacker who did nothing', () => {
  expect(rulesOf({ memory: [{ process: 'server', megabytes: 501 }] })).toEqual(['too much memory']);
  expect(rulesOf({ attacks: new Map() })).toEqual(['an attacker does not work']);
});
