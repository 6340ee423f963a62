import { ask } from './measure/ask.ts';
import type { LoadRequest } from './measure/load-order.ts';
import { getRequest, personalSignRequest, postRequest } from './requests.ts';
import type { Address } from './servers/launch.ts';

const WALLETS = 100;

/** What one request can create. */
const BATCH = 100;

/** Creates wallets and returns their ids, oldest first. */
export async function createWallets(address: Address, count: number, chainType: string): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) {
    const wallets = Array(Math.min(BATCH, count - ids.length)).fill({ chain_type: chainType });
    const { results } = await ask<{ results: { wallet: { id: string } }[] }>(
      address,
      postRequest(address, '/v1/wallets/batch', { wallets }),
    );
    ids.push(...results.map(({ wallet }) => wallet.id));
  }
  return ids;
}

/** The wallet requests to a server. A hundred wallets are created first, so that reads vary. */
export async function walletRequests(address: Address): Promise<{
  getWallet: LoadRequest[];
  createWallet: LoadRequest[];
  personal_sign: LoadRequest[];
}> {
  const createWallet = postRequest(address, '/v1/wallets', { chain_type: 'ethereum' });
  const ids: string[] = [];
  for (let made = 0; made < WALLETS; made += 1)
    ids.push((await ask<{ id: string }>(address, createWallet)).id);
  return {
    getWallet: ids.map((id) => getRequest(address, `/v1/wallets/${id}`)),
    createWallet: [createWallet],
    personal_sign: ids.map((id, index) =>
      personalSignRequest(address, id, `Approve invoice ${2000 + index}`),
    ),
  };
}
