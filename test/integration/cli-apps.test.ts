import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { expect, test } from 'vitest';
import type { AppJwks, User } from '../../src/generated/schemas.ts';
import { runCustos, serveCustos, temporaryFolder } from '../support/run-custos.ts';

const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const verificationKey = keys.publicKey.export({ format: 'pem', type: 'spki' }).toString();
const recipient = keys.publicKey.export({ format: 'der', type: 'spki' }).toString('base64');

test('an app that trusts a key by `custos apps configure` accepts tokens signed with it', async () => {
  const data = temporaryFolder();
  await using custos = await serveCustos(['sandbox', '--data', data]);
  const settings = join(data, 'settings.json');
  writeFileSync(settings, JSON.stringify({ jwt_auth: { verification_key: verificationKey } }));
  const { code, stdout } = await runCustos([
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
  const data = temporaryFolder();
  await using custos = await serveCustos(['sandbox', '--data', data]);
  const path = `/v1/apps/${custos.ready.app_id}/jwks.json`;
  const { body: before } = await custos.call<AppJwks>('GET', path);
  const { code } = await runCustos(['apps', 'rotate-signing-key', custos.ready.app_id, '--data', data]);
  expect(code).toBe(0);
  const { body: after } = await custos.call<AppJwks>('GET', path);
  expect(after.keys).toHaveLength(2);
  expect(after.keys.slice(1)).toEqual(before.keys);
});

test.each([
  ['not JSON', '{', 2, '--settings: expected JSON'],
  ['no object', '[]', 2, '--settings: expected a JSON object'],
  ['an invalid key', '{"jwt_auth":{"verification_key":"no key"}}', 1, 'verification_key'],
  [
    'an unreachable key set',
    '{"jwt_auth":{"jwks_url":"https://127.0.0.1:9/jwks.json"}}',
    1,
    'the JWKS document could not be fetched',
  ],
])('settings that are %s are refused', async (_what, settings, code, message) => {
  const data = temporaryFolder();
  await using custos = await serveCustos(['sandbox', '--data', data]);
  const finished = await runCustos([
    ...['apps', 'configure', custos.ready.app_id, '--settings', settings, '--data', data],
  ]);
  expect(finished.code).toBe(code);
  expect(finished.stderr).toContain(message);
});
