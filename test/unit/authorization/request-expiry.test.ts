import { expect, test } from 'vitest';
import { ApiError } from '../../../src/errors.ts';
import { readRequestExpiry } from '../../../src/server/request-proof.ts';

const nowMs = 1_763_719_200_000;

test('a request without the header never expires', () => {
  expect(readRequestExpiry(undefined, nowMs)).toBeUndefined();
});

test.each([nowMs, nowMs + 1, nowMs + 72 * 3_600_000, Number.MAX_SAFE_INTEGER])(
  '%d is not past',
  (expiryMs) => {
    expect(readRequestExpiry(String(expiryMs), nowMs)).toBe(expiryMs);
  },
);

test.each([
  ['a millisecond ago', String(nowMs - 1)],
  ['zero', '0'],
  ['seconds in place of milliseconds', String(nowMs / 1000)],
  ['the empty string', ''],
  ['text', 'soon'],
  ['an ISO date', '2035-01-01T00:00:00Z'],
  ['a sign', `+${nowMs + 1}`],
  ['a fraction', `${nowMs + 1}.5`],
  ['an exponent', '9e15'],
  ['hex', '0x7fffffffffffff'],
  ['a leading zero', `0${nowMs + 1}`],
  ['two values', `${nowMs + 1}, ${nowMs + 1}`],
  ['a number that is not exact', '9007199254740993'],
  ['many digits', '9'.repeat(400)],
])('%s is refused', (_, header) => {
  expect(() => readRequestExpiry(header, nowMs)).toThrow(
    expect.objectContaining({ constructor: ApiError, code: 'request_expired', status: 400 }),
  );
});
