import * as AbiParameters from 'ox/AbiParameters';
import { hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { decodeTokenQuery } from '../../../../engine/signing/ethereum/token-calls.ts';
import type { EvmState } from './state.ts';

const uint = AbiParameters.from('uint256');
const text = AbiParameters.from('string');

/** The return data of a read-only token call; empty for an unknown token or an unsupported call. */
export function answerTokenQuery({
  token,
  to,
  data,
  state: { ledger, accounts },
}: {
  token: { decimals: number; symbol: string } | undefined;
  /** Lower-case 0x hex. */
  to: string;
  data: Uint8Array;
  state: Pick<EvmState, 'ledger' | 'accounts'>;
}): Uint8Array {
  const query = decodeTokenQuery(data);
  if (token === undefined || query === undefined) return new Uint8Array();
  if (query.name === 'symbol' || query.name === 'name') {
    return hexToBytes(AbiParameters.encode(text, [token.symbol]).slice(2));
  }
  const numbers = {
    balanceOf: () => ('owner' in query ? ledger.balance(query.owner, to) : 0n),
    allowance: () => (query.name === 'allowance' ? accounts.allowance({ ...query, token: to }) : 0n),
    decimals: () => BigInt(token.decimals),
    totalSupply: () => ledger.total(to),
  };
  return hexToBytes(AbiParameters.encode(uint, [numbers[query.name]()]).slice(2));
}
