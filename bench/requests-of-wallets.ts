import { ask } from './measure/ask.ts';
import type { LoadRequest } from './measure/load-order.ts';
import { getRequest, personalSignRequest, postRequest } from './requests.ts';
import type { Address } from './servers/launch.ts';

const WALLETS = 100;

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
