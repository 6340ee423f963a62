import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { canonicalPayloads } from '../src/engine/authorization/request-signatures.ts';
import { ask } from './measure/ask.ts';
import type { LoadRequest } from './measure/load-order.ts';
import { personalSignRequest, postRequest } from './requests.ts';
import type { Address } from './servers/launch.ts';

const WALLETS = 20;
const MESSAGES_EACH = 10;

/** `personal_sign` on wallets owned by a two-of-three key quorum; each request is signed with two of the keys. */
export async function quorumSignedRequests(address: Address): Promise<LoadRequest[]> {
  const keys = [0, 1, 2].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }));
  const quorum = postRequest(address, '/v1/key_quorums', {
    public_keys: keys.map(({ publicKey }) =>
      publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
    ),
    authorization_threshold: 2,
  });
  const { id: ownerId } = await ask<{ id: string }>(address, quorum);
  const wallet = postRequest(address, '/v1/wallets', { chain_type: 'ethereum', owner_id: ownerId });
  const requests: LoadRequest[] = [];
  for (let made = 0; made < WALLETS; made += 1) {
    const { id } = await ask<{ id: string }>(address, wallet);
    for (let at = 0; at < MESSAGES_EACH; at += 1) {
      const unsigned = personalSignRequest(address, id, `Approve invoice ${made}-${at}`);
      requests.push(
        signed(
          address,
          unsigned,
          keys.slice(0, 2).map(({ privateKey }) => privateKey),
        ),
      );
    }
  }
  return requests;
}

function signed(address: Address, request: LoadRequest, keys: readonly KeyObject[]): LoadRequest {
  const [payload] = canonicalPayloads({
    method: request.method,
    urls: [address.origin + request.path],
    body: JSON.parse(request.body ?? 'null'),
    headers: { 'service-app-id': address.appId },
  });
  const signatures = keys.map((key) => sign('sha256', payload as Uint8Array, key).toString('base64'));
  const headers = { ...request.headers, 'service-authorization-signature': signatures.join(',') };
  return { ...request, headers };
}
