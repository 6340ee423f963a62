import { expect, test } from 'vitest';
import { readTraceParent, traceHeaders } from '../../../src/telemetry/trace-context.ts';

// The examples of W3C Trace Context, sections 3.2.4, 3.3.4 and 4.
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';

test.each([
  [`00-${traceId}-${spanId}-01`, true],
  [`00-${traceId}-${spanId}-00`, false],
  [`cc-${traceId}-${spanId}-01-what-the-future-will-be-like`, true],
])('a sender continues its trace: %s', (parent, isSampled) => {
  const state = 'congo=t61rcWkgMzE';
  const context = readTraceParent(parent, state);
  expect(context).toEqual({ traceId, spanId, isSampled, state });
  expect(traceHeaders(context!)).toEqual({
    traceparent: `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`,
    tracestate: state,
  });
});

test.each([
  undefined,
  '',
  `ff-${traceId}-${spanId}-01`,
  `00-${traceId}-${spanId}-01-more`,
  `00-${'0'.repeat(32)}-${spanId}-01`,
  `00-${traceId}-${'0'.repeat(16)}-01`,
  `00-${traceId.toUpperCase()}-${spanId}-01`,
  `00-${traceId}-${spanId}`,
])('anything else begins a new trace: %s', (parent) => {
  expect(readTraceParent(parent, undefined)).toBeUndefined();
});

test('a `tracestate` that is too long is not passed on', () => {
  const context = readTraceParent(`00-${traceId}-${spanId}-01`, 'a='.padEnd(600, 'x'));
  expect(traceHeaders(context!)).toEqual({ traceparent: `00-${traceId}-${spanId}-01` });
});
