import { expect, test } from 'vitest';
import { isUnavailable } from '../../../src/errors.ts';
import { fromSentError } from '../../../src/keys/signer-errors.ts';

test('a refusal of a later signer, which has no error here, is answered 503, and a fault of the signer is not', () => {
  const refusal = fromSentError({ code: 'not_on_fridays', message: 'it is Friday' });
  expect(isUnavailable(refusal)).toBe(true);
  expect(refusal.message).toBe('the signer refuses: it is Friday');
  for (const sent of [{ code: 'internal' }, { code: 'protocol' }, {}, undefined])
    expect(isUnavailable(fromSentError(sent))).toBe(false);
});
