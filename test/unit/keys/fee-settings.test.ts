import { randomBytes } from 'node:crypto';
import { duplexPair } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { readSignerConfig } from '../../../src/config/config.ts';
import { quorumReference } from '../../../src/engine/authorization/quorum-records.ts';
import { operationNames } from '../../../src/keys/protocol.ts';
import { serveConnection } from '../../../src/keys/serve-connection.ts';
import { servedKeyStore } from '../../../src/keys/serve-signer.ts';
import { connectTo, type SignerConnection } from '../../../src/keys/signer-connection.ts';
import { ofKey } from '../../support/signer/compromised-server.ts';
import { newOwner, signedBy } from '../../support/signer/owner.ts';

// The key store that a signer serves, with the settings of its environment.

const friend = `0x${'11'.repeat(20)}`;
const gwei = 10n ** 9n;
let end = (): void => undefined;
afterEach(() => end());

/** Has a signer sign a transaction whose price the server has filled in. */
async function signerWith(settings: Record<string, string>) {
  const served = servedKeyStore(
    readSignerConfig({ CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'), ...settings }),
  );
  const [ours, its] = duplexPair();
  serveConnection(its, served);
  const signer: SignerConnection = await connectTo(ours);
  end = () => {
    signer.close();
    served.close();
  };
  const call = (name: (typeof operationNames)[number], parts: readonly Uint8Array[], json: object) =>
    signer.call(operationNames.indexOf(name), parts, json);
  const owner = newOwner();
  const record = ofKey(owner);
  const authority = { owner: quorumReference(record.base), signers: [], isAutomated: false };
  const binding = { purpose: 'ethereum', rowId: 'wallet', appId: 'acme' };
  const { parts, json } = await call('createWalletKey', [], { binding, authority });
  const { key } = json as { key: string };
  return async (price: bigint) => {
    const asked = { to: friend, value: '0x1' };
    const body = { method: 'eth_sendTransaction', caip2: 'eip155:1', params: { transaction: asked } };
    const evidence = signedBy([owner], { path: '/v1/wallets/wallet/rpc', body });
    const fees = { type: 0, gas_limit: '0x5208', gas_price: `0x${price.toString(16)}` };
    const params = { transaction: { ...asked, ...fees, chain_id: 1, nonce: 0 } };
    const use = { authority, quorums: [record], userKeys: {}, evidence };
    const task = { key, binding, method: 'eth_signTransaction', params, use };
    return (await call('signWithWallet', parts, task)).json;
  };
}

test('a signer without the setting has the default ceilings', async () => {
  const signs = await signerWith({});
  expect(await signs(2_000n * gwei)).toHaveProperty('signed_transaction');
  await expect(signs(2_000n * gwei + 1n)).rejects.toThrow('more than its ceiling of 2000000000000');
});

test.each([
  ['lower', 7n],
  ['higher', 3_000n],
])('a signer has the %s ceilings of its setting', async (_, ceiling) => {
  const signs = await signerWith({ CUSTOS_FEE_CEILINGS: `eip155:1=price_gwei:${ceiling} eip155:10=gas:1` });
  expect(await signs(ceiling * gwei)).toHaveProperty('signed_transaction');
  await expect(signs(ceiling * gwei + 1n)).rejects.toThrow(`more than its ceiling of ${ceiling * gwei}`);
});
