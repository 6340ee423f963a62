import { expect } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import { call, refusal } from '../../support/call.ts';
import type { TestSandbox } from '../../support/sandbox.ts';

const [alice, bob, carol] = [aliceKey.privateKey, bobKey.privateKey, carolKey.privateKey];

/** A change of a resource that Alice and Bob own together. */
export interface OwnedChange {
  readonly operation: OperationId;
  readonly input: { readonly path: object; readonly body?: unknown };
}

/** A key quorum of which both Alice and Bob must sign. */
export async function makePair(sandbox: TestSandbox): Promise<string> {
  const body = { public_keys: [aliceKey.publicKey, bobKey.publicKey], authorization_threshold: 2 };
  return (await call(sandbox, 'createKeyQuorum', { body })).body.id;
}

/** Signs as both owners. */
export const signedByPair = { signWith: [alice, bob] };

/**
 * Expects that a change is refused without its owners' signatures, with every code for the reason, and also when they
 * signed another deadline than the one that is sent or the deadline is past.
 */
export async function expectOwnersAreAsked(
  sandbox: TestSandbox,
  { operation, input }: OwnedChange,
): Promise<void> {
  const outcome = async (options: Parameters<typeof refusal>[3]): Promise<string> => {
    const { status, body } = await refusal(sandbox, operation, input, options);
    return `${status} ${body.code}`;
  };
  const nowMs = sandbox.clock.now();
  expect({
    unsigned: await outcome({}),
    empty: await outcome({ headers: { 'service-authorization-signature': '' } }),
    oneOfTwo: await outcome({ signWith: [alice] }),
    oneTwice: await outcome({ signWith: [alice, alice] }),
    oneAndAStranger: await outcome({ signWith: [bob, carol] }),
    strangers: await outcome({ signWith: [carol, carol] }),
    otherDeadline: await outcome({
      ...signedByPair,
      expiryMs: nowMs + 1000,
      headers: { 'service-request-expiry': String(nowMs + 2000) },
    }),
    pastDeadline: await outcome({ ...signedByPair, expiryMs: nowMs - 1 }),
  }).toEqual({
    unsigned: '401 missing_or_empty_authorization_header',
    empty: '401 missing_or_empty_authorization_header',
    oneOfTwo: '401 incorrect_quantity_of_authorization_signatures',
    oneTwice: '401 insufficient_correct_authorization_signatures',
    oneAndAStranger: '401 insufficient_correct_authorization_signatures',
    strangers: '401 zero_correct_authorization_signatures',
    otherDeadline: '401 zero_correct_authorization_signatures',
    pastDeadline: '400 request_expired',
  });
}
