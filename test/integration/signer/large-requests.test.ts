import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { behindProtocol, type Task } from '../../support/signer/behind-protocol.ts';
import { keyOf } from '../../support/signer/login-clients.ts';
import { newOwner } from '../../support/signer/owner.ts';

// A message to the signer has at most 8 MiB, and a body of a request 1 MiB.

describe.each(databaseKinds)('on %s, behind the protocol of the signer', (kind) => {
  const owner = keyOf(newOwner());
  let tamper: (task: Task) => Task = (task) => task;
  let server: TestOperations;
  let wallet: Wallet;
  beforeAll(async () => {
    server = await openOperations(kind, { replaceKeyStore: behindProtocol((task) => tamper(task)) });
    const body = { chain_type: 'ethereum', owner: { public_key: owner.publicKey } };
    wallet = (await server.run('createWallet', { body })).body as Wallet;
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const signs = (message: string) =>
    server.run('walletRpc', {
      path: { wallet_id: wallet.id },
      body: { method: 'personal_sign', params: { message, encoding: 'utf-8' } },
      ...{ signWith: [owner.privateKey], signElsewhereWith: [owner.privateKey] },
    });

  // Quotes are what grows the most: two bytes in the body, four in the signed text within a message.
  test('the largest body is signed, under two names of the server', async () => {
    expect(await signs('"'.repeat(2 ** 19 - 100))).toMatchObject({ status: 200 });
  });

  test('what is larger than a message is answered 413, and the next request is signed', async () => {
    tamper = ({ method, params }) => {
      const padding = 'x'.repeat(8 * 2 ** 20);
      return { method, params: { ...(params as object), padding } } as unknown as Task;
    };
    expect(await signs('hello')).toMatchObject({
      status: 413,
      body: { error: expect.stringContaining('/body: too large for the signer') },
    });
    tamper = (task) => task;
    expect(await signs('hello')).toMatchObject({ status: 200 });
  });
});
