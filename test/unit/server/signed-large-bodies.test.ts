import { expect, test } from 'vitest';
import { idempotencyKeys } from '../../../src/domain/base/idempotency/idempotency-keys.ts';
import { createNotes, type Services } from '../../../src/ports/operation-context.ts';
import { runnerOf } from '../../support/run-handlers.ts';
import { appHeaders, startToyServer, toyOperations } from './toy-server.ts';

test.each([
  ['an ordinary body is canonicalized', undefined, 1],
  ['a body that may be larger than others is not', 16_777_216, 0],
])('to accept its signature once, %s', async (_, maxBodyBytes, expected) => {
  let canonicalized = 0;
  const registry = { createToy: { run: async () => ({ id: 'bear' }) } };
  const run = runnerOf(registry, {
    services: { keyStore: { isLocal: true } } as Services,
    openUnit: async () => ({
      ...{ em: {} as never, notes: createNotes(), watches: [] },
      commit: async () => undefined,
      rollback: async () => undefined,
    }),
    idempotency: idempotencyKeys(),
    singleUse: {
      async begin(_em, { proof }) {
        canonicalized += proof.canonicalPayloads().length;
        return { isRequired: true };
      },
      keep: () => expect.unreachable('the payload was stored'),
      replace: () => expect.unreachable('the payload was stored'),
    },
    check: () => undefined,
  });
  const operations = toyOperations.map((operation) =>
    operation.id === 'createToy' && maxBodyBytes !== undefined ? { ...operation, maxBodyBytes } : operation,
  );
  await using server = await startToyServer({ operations, run });
  const { status } = await server.fetch('POST', '/v1/toys', {
    headers: {
      ...appHeaders,
      'content-type': 'application/json',
      'service-authorization-signature': 'c2lnbmF0dXJl',
    },
    body: JSON.stringify({ name: 'bear', note: 'x'.repeat(900_000) }),
  });
  expect({ status, canonicalized }).toEqual({ status: 200, canonicalized: expected });
});
