import { generateKeyPairSync, sign } from 'node:crypto';
import { Agent } from 'undici';
import { toHex } from 'viem';
import { expect, test } from 'vitest';
import { canonicalPayloads } from '../../../src/engine/authorization/request-signatures.ts';
import { startAnvil } from '../../support/anvil.ts';
import { serveSettings } from '../../support/postgres/serve-settings.ts';
import { runCommand, startCustos, waitFor } from '../../support/run-custos.ts';

// A production server with its signer in a process of its own, and a node of a chain that knows neither.

const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const gwei = 10n ** 9n;

function drawKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { privateKey, publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64') };
}

test('a transfer of an owned wallet passes the signer and reaches the chain, once its owner has signed it', async () => {
  await using anvil = await startAnvil(8453);
  const { env: settings, ca } = await serveSettings();
  const env = {
    ...settings,
    CUSTOS_RPC: `eip155:8453=${anvil.url}`,
    CUSTOS_CONFIRMATIONS: 'eip155:8453=off',
  };
  const app = JSON.parse((await runCommand(['apps', 'create', '--name', 'Acme', '--json'], { env })).stdout);
  const custos = await startCustos(['serve'], { env });
  const agent = new Agent({ connect: { ca } });
  try {
    const ready = (): { url: string } | undefined => {
      const lines = custos.output().stdout.trim().split('\n').filter(Boolean);
      return lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'ready');
    };
    await waitFor(() => ready() !== undefined || custos.process.exitCode !== null);
    const origin = ready()!.url;
    const owner = drawKey();
    const post = async (path: string, body: object, isSigned = false) => {
      const signedHeaders = {
        'service-app-id': app.id as string,
        'service-request-expiry': String(Date.now() + 60_000),
      };
      const [payload] = canonicalPayloads({
        ...{ method: 'POST', urls: [settings.CUSTOS_PUBLIC_URLS ?? origin].map((url) => url + path), body },
        headers: signedHeaders,
      });
      const answer = await agent.request({
        ...{ origin, path, method: 'POST', body: JSON.stringify(body) },
        headers: {
          authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
          ...signedHeaders,
          'content-type': 'application/json',
          ...(isSigned && {
            'service-authorization-signature': sign('sha256', payload!, owner.privateKey).toString('base64'),
          }),
        },
      });
      return { status: answer.statusCode, body: (await answer.body.json()) as Record<string, unknown> };
    };
    const { body: wallet } = await post('/v1/wallets', {
      chain_type: 'ethereum',
      owner: { public_key: owner.publicKey },
    });
    await anvil.ask('anvil_setBalance', wallet.address, toHex(10n ** 18n));
    const transfer = {
      source: { asset: 'eth', chain: 'base', amount: '0.000001' },
      destination: { address: receiver },
    };
    const path = `/v1/wallets/${wallet.id}/transfer`;
    expect((await post(path, transfer)).status).toBe(401);
    expect(await post(path, transfer, true)).toMatchObject({ status: 200, body: { type: 'transfer' } });
    await anvil.ask('evm_mine');
    expect(BigInt((await anvil.ask('eth_getBalance', receiver, 'latest')) as string)).toBe(1000n * gwei);
  } finally {
    await custos.stop();
    await agent.destroy();
  }
}, 120_000);
