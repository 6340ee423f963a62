import { expect, test } from 'vitest';
import { acmeApp } from '../../../mocks/apps.ts';
import { isLong } from '../../figures/figure.ts';
import { call } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

// Lists without pages end, however many rows an app has made: a longer one would keep the thread from others.
const MOST = 1_000;

test.skipIf(!isLong)('the wallets of a new key and the allowlist end with the newest', async () => {
  await using sandbox = await startSandbox();
  const { email, otp_code: code } = acmeApp.testAccount;
  const { body: login } = await call(sandbox, 'authenticatePasswordless', { body: { email, code } });
  const { body: quorum } = await call(sandbox, 'createKeyQuorum', { body: { user_ids: [login.user.id] } });
  const wallets = Array.from({ length: 100 }, () => ({ chain_type: 'sui' as const, owner_id: quorum.id }));
  for (let batch = 0; batch < 11; batch += 1) {
    await call(sandbox, 'createWalletsBatch', { body: { wallets } });
    sandbox.clock.advance(1);
  }
  const { body: newest } = await call(sandbox, 'createWallet', { body: wallets[0]! });
  const { body: key } = await call(sandbox, 'authenticateWallets', { body: { user_jwt: login.token } });
  expect(key.wallets).toHaveLength(MOST);
  expect(key.wallets[0]!.id).toBe(newest.id);

  const path = { app_id: sandbox.appId };
  const add = (index: number) =>
    call(sandbox, 'createAllowlistEntry', {
      ...{ path, body: { type: 'email' as const, value: `user-${index}@acme.example` } },
    });
  for (let index = 0; index <= MOST; index += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, at) => add(index + at)));
  }
  expect((await call(sandbox, 'listAllowlistEntries', { path })).body).toHaveLength(MOST);
});
