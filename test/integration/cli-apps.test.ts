import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { expect, test } from 'vitest';
import type { AppJwks, User } from '../../src/generated/schemas.ts';
import { call } from '../support/call.ts';
import { runCommand, serveCustos, temporaryFolder } from '../support/run-custos.ts';
import { startSandbox } from '../support/sandbox.ts';

const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const verificationKey = keys.publicKey.export({ format: 'pem', type: 'spki' }).toString();
const recipient = keys.publicKey.export({ format: 'der', type: 'spki' }).toString('base64');

test('an app that trusts a key by `custos apps configure` accepts tokens signed with it', async () => {
  const data = temporaryFolder();
  await using custos = await serveCustos(['sandbox', '--data', data]);
  const settings = join(data, 'settings.json');
  writeFileSync(settings, JSON.stringify({ jwt_auth: { verification_key: verificationKey } }));
  const { code, stdout } = await runCommand([
    ...['apps', 'configure', custos.ready.app_id, '--settings', `@${settings}`],
    ...['--data', data, '--json'],
  ]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    id: custos.ready.app_id,
    settings: { jwt_auth: { verification_key: verificationKey, user_id_claim: 'sub', audiences: [] } },
  });
  const { body: user } = await custos.call<User>('POST', '/v1/users', {
    linked_accounts: [{ type: 'custom_auth', custom_user_id: 'alice' }],
    wallets: [{ chain_type: 'ethereum' }],
  });
  const token = await new SignJWT({})
    .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
    .setSubject('alice')
    .setExpirationTime('1h')
    .sign(keys.privateKey);
  const answer = await custos.call<{ wallets: { address: string }[] }>('POST', '/v1/wallets/authenticate', {
    user_jwt: token,
    encryption_type: 'HPKE',
    recipient_public_key: recipient,
  });
  expect(answer.status).toBe(200);
  const embedded = user.linked_accounts.flatMap((account) => ('address' in account ? account.address : []));
  expect(answer.body.wallets.map(({ address }) => address)).toEqual(embedded);
});

test('after `custos apps rotate-signing-key` the previous key stays listed', async () => {
  const dataFolder = temporaryFolder();
  await using sandbox = await startSandbox({ dataFolder });
  const listed = async () =>
    (await call(sandbox, 'getAppJwks', { path: { app_id: sandbox.appId } })).body as AppJwks;
  const before = await listed();
  const { code } = await runCommand(['apps', 'rotate-signing-key', sandbox.appId, '--data', dataFolder]);
  expect(code).toBe(0);
  const after = await listed();
  expect(after.keys).toHaveLength(2);
  expect(after.keys.slice(1)).toEqual(before.keys);
});

test('settings that cannot be read or used are refused', async () => {
  const dataFolder = temporaryFolder();
  await using sandbox = await startSandbox({ dataFolder });
  const refused: readonly (readonly [string, number, string])[] = [
    ['{', 2, '--settings: expected JSON'],
    ['[]', 2, '--settings: expected a JSON object'],
    ['{"jwt_auth":{"verification_key":"no key"}}', 1, 'verification_key'],
    [
      '{"jwt_auth":{"jwks_url":"https://127.0.0.1:9/jwks.json"}}',
      1,
      'the JWKS document could not be fetched',
    ],
  ];
  for (const [settings, code, message] of refused) {
    const finished = await runCommand([
      ...['apps', 'configure', sandbox.appId, '--settings', settings, '--data', dataFolder],
    ]);
    expect({ settings, code: finished.code }).toEqual({ settings, code });
    expect(finished.stderr).toContain(message);
  }
});
