import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { call } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const types = ['ethereum', 'solana', 'tron'] as const;

async function createWallets(sandbox: TestSandbox): Promise<string[]> {
  const bodies = [...types, ...types].map((chain_type) => ({ chain_type }));
  const one = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  const some = await Promise.all(bodies.map((body) => call(sandbox, 'createWallet', { body })));
  const answers = [one, ...some].map(({ body }) => body as { id: string; address: string });
  const { body } = await call(sandbox, 'createWalletsBatch', { body: { wallets: bodies } });
  const { results } = body as { results: { wallet: { id: string; address: string } }[] };
  return [...answers, ...results.map(({ wallet }) => wallet)].map(({ id, address }) => `${id} ${address}`);
}

test('a seed gives the same wallets with and without prepared keys, also after a snapshot and a reset', async () => {
  await using plain = await startSandbox();
  await using preparing = await startSandbox({ preparedKeys: 16 });
  // Long enough to prepare some of them, which the result must not depend on.
  await pause(900);
  const walk = async (sandbox: TestSandbox): Promise<string[][]> => {
    const created = [await createWallets(sandbox)];
    await sandbox.snapshots.save('here');
    created.push(await createWallets(sandbox));
    await sandbox.snapshots.load('here');
    created.push(await createWallets(sandbox));
    await sandbox.reset();
    created.push(await createWallets(sandbox));
    return created;
  };
  const [expected, walks] = [await walk(plain), await walk(preparing)];
  expect(walks).toEqual(expected);
  const [first, second, afterLoad, afterReset] = walks;
  expect(afterLoad).toEqual(second);
  expect(afterReset).toEqual(first);
  expect(new Set([...first!, ...second!]).size).toBe(26);
});
