import { keccak_256 } from '@noble/hashes/sha3.js';
import { decimalText } from '../../../engine/assets/decimal.ts';
import { chainOfCaip2 } from '../../../engine/assets/known-chains.ts';
import {
  callRequests,
  disguisedOperations,
  type EthereumCall,
  hashRequests,
  isEvmAddress,
  SENDER,
  STRANGER,
  signedBytesOf,
} from './lint-ethereum-calls.ts';
import { paymentGrants, tokenEffects, tokenTransfers } from './lint-ethereum-grants.ts';
import { messageEffects } from './lint-ethereum-messages.ts';
import {
  boundaryNumbers,
  bytesRequest,
  distinct,
  type Effect,
  type LintSubject,
  MOST_RECEIVERS,
  namedValues,
  type TriedRequest,
  transferRequest,
} from './lint-requests.ts';

const MOST_CHAINS = 3;
/** A chain that accepts typed data as transactions. */
const ZKSYNC_ERA = 324;

/**
 * Payments with the receivers, values and chains that the conditions name, and with other values. Tokens and messages
 * follow.
 */
export async function* ethereumEffects(subject: LintSubject): AsyncGenerator<Effect> {
  const { conditions, sender = SENDER } = subject;
  const named = (field: string): string[] =>
    namedValues(conditions, (each) => each.field_source === 'ethereum_transaction' && each.field === field);
  const transfers = namedValues(conditions, ({ field }) => field === 'destination.address');
  const receivers = [...named('to'), ...transfers].filter(isEvmAddress);
  const chains = distinct(
    [1, ...named('chain_id').map(Number).filter(Number.isSafeInteger), 10],
    MOST_CHAINS,
  );
  for (const to of distinct([STRANGER, ...receivers], MOST_RECEIVERS)) {
    for (const value of boundaryNumbers(named('value'), 2n ** 256n)) {
      for (const chainId of new Set([...chains, ZKSYNC_ERA])) {
        if (chainId > 0) yield await paymentEffect({ to, value, chainId, sender });
      }
    }
  }
  const [chainId = 1] = chains.filter((id) => id > 0);
  yield* tokenEffects({ ...subject, chainId, receivers: [STRANGER, ...receivers], sender });
  yield* messageEffects(conditions);
}

async function paymentEffect(call: EthereumCall): Promise<Effect> {
  const signed = await signedBytesOf(call);
  return {
    calls: [...callRequests(call), ...transferOf(call)],
    others: [
      { kind: 'hash_signing', of: 'eth_signTransaction', requests: hashRequests(keccak_256(signed)) },
      { kind: 'raw_signing', of: 'eth_signTransaction', requests: [bytesRequest(signed, 'keccak256')] },
      { kind: 'user_operation_hash', of: 'eth_signUserOperation', requests: disguisedOperations(call) },
      ...paymentGrants(call).map((grant) => ({ kind: 'sibling_call' as const, ...grant })),
      ...tokenTransfers(call),
    ],
  };
}

/** The same payment as a transfer, if the chain and its asset have names in the contract. */
function transferOf({ to, value, chainId }: EthereumCall): readonly TriedRequest[] {
  const chain = chainOfCaip2(`eip155:${chainId}`);
  if (chain?.native === undefined || value === 0n) return [];
  const amount = decimalText({ digits: value, scale: chain.native.decimals });
  const source = { asset: chain.native.asset, amount, chain: chain.name };
  return [transferRequest({ source, destination: { address: to } })];
}
