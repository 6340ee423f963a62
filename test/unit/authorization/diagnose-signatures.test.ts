import { expect, test } from 'vitest';
import { diagnoseSignatures } from '../../../src/engine/authorization/diagnose-signatures.ts';

const verified = { keys: new Set<string>(), keyOfSignature: [], payloadIndices: new Set<number>() };

/** What the first step costs, in verifications, and how many steps there are. */
function stepsOf(body: string): { first: number; count: number } {
  const text = JSON.stringify({
    body,
    headers: {},
    method: 'PATCH',
    url: 'https://api.acme.example/v1/users',
  });
  const payloads = [new TextEncoder().encode(text)];
  const steps = [...diagnoseSignatures({ signatures: [], payloads, verified, parties: [] })];
  return { first: steps[0]!, count: steps.length };
}

test('showing a large payload costs as much as many verifications, so others run before', () => {
  const large = stepsOf('7'.repeat(1_000_000));
  expect(large.count).toBe(1);
  expect(large.first).toBeGreaterThan(100);
  expect(stepsOf('7').first).toBeLessThan(1);
});
