import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chains } from '../../../src/engine/signing/chains.ts';
import {
  type CompromisedServer,
  compromisedServer,
  ofKey,
  type SealedWallet,
  useOf,
} from '../../support/signer/compromised-server.ts';
import { newOwner, signedBy } from '../../support/signer/owner.ts';

// On these chains the server fills in nothing: what is signed is what the owner has signed, member by member.

const owner = newOwner();
const built = ['ethereum', 'solana', 'tron', 'spark'];
const others = (Object.keys(chains) as (keyof typeof chains)[]).filter((name) => !built.includes(name));
const [hash, otherHash] = [1, 2].map((byte) => `0x0${String(byte).repeat(63)}`);

let server: CompromisedServer;
beforeAll(async () => {
  server = await compromisedServer(1_900_000_000_000);
});
afterAll(() => server.close());

const signs = (wallet: SealedWallet, path: string, body: object, task: object) =>
  server.signs(wallet, task, useOf(wallet, signedBy([owner], { path: `/v1/wallets/wallet${path}`, body })));

/** All that a key may be asked to sign, whether its chain has it or not. */
const tasks = [
  ...Object.values(chains).flatMap(({ rpcMethods }) =>
    rpcMethods.filter((name) => !name.startsWith('export')),
  ),
  'spark_operation',
].map((method) => ({ method, params: { transaction: '0x00', raw_transaction: '0x00', encoding: 'hex' } }));
const raw = { method: 'raw_sign', params: { hash } };

describe.each(others)('%s', (chainType) => {
  let wallet: SealedWallet;
  beforeAll(async () => {
    wallet = await server.walletOf({ owner: ofKey(owner), chainType });
  });

  test('a hash or bytes are signed as the owner has sent them', async () => {
    await expect(signs(wallet, '/raw_sign', { params: { hash } }, raw)).resolves.toBeDefined();
    const bytes = { bytes: 'abcd', encoding: 'hex', hash_function: 'sha256' };
    const changes = [
      { bytes: 'abce' },
      { encoding: 'utf-8' },
      { hash_function: 'keccak256' },
      { hash: otherHash },
      { more: 1 },
    ];
    for (const change of changes) {
      const task = { method: 'raw_sign', params: { ...bytes, ...change } };
      const what = JSON.stringify(change);
      await expect(signs(wallet, '/raw_sign', { params: bytes }, task), what).rejects.toThrow(
        'asks for something else',
      );
    }
    const task = { method: 'raw_sign', params: { hash: otherHash } };
    await expect(signs(wallet, '/raw_sign', { params: { hash } }, task)).rejects.toThrow(
      'asks for something else',
    );
  });

  test('nothing is signed for a request whose transactions the server would build', async () => {
    const paths = ['/transfer', '/swap', '/payout/fiat', '/earn/ethereum/deposit', '/automations/attach', ''];
    const sent = [
      'transfer',
      'withdraw',
      'eth_sendTransaction',
      'wallet_sendCalls',
      'signAndSendTransaction',
    ];
    const asked = [
      ...paths.map((path) => [path, { params: { hash } }] as const),
      ...sent.map((method) => ['/rpc', { method, params: { hash } }] as const),
    ];
    for (const [path, body] of asked) {
      for (const task of [raw, ...tasks]) {
        const what = `${task.method} for ${path} ${JSON.stringify(body)}`;
        await expect(signs(wallet, path, body, task), what).rejects.toMatchObject({
          name: 'UnauthorizedUseError',
        });
      }
    }
  });

  const methods = chains[chainType].rpcMethods.filter((name) => !name.startsWith('export'));

  test.runIf(methods.length > 0)('a transaction to be signed is the one of the request', async () => {
    for (const method of methods) {
      const params = { transaction: '0x00', encoding: 'hex' };
      for (const change of [{ transaction: '0x01' }, { encoding: 'base64' }, { network: 'other' }]) {
        const task = { method, params: { ...params, ...change } };
        await expect(signs(wallet, '/rpc', { method, params }, task)).rejects.toThrow(
          'asks for something else',
        );
      }
    }
  });
});
