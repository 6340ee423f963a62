import { withoutSuffix } from '../../../actions/account-calls.ts';
import { decodeRpcAction, transactionUnits } from '../../../actions/decode-action.ts';
import { decodeTronUnits } from '../../../actions/decode-raw-bytes.ts';
import { decodeSolanaUnits } from '../../../actions/decode-solana-units.ts';
import { invalidField } from '../../../errors.ts';
import type { UnsignedEthereumTransaction } from '../../../generated/schemas.ts';
import type { ActionUnit, PolicyAction } from '../../../policy/action.ts';
import { decodeBatch, encodeBatch } from '../../../signing/ethereum/batch-executor.ts';
import { decodeEthereumTransaction } from '../../../signing/ethereum/decode-transaction.ts';
import {
  type EthereumTransaction,
  prepareEthereumTransaction,
} from '../../../signing/ethereum/sign-transaction.ts';
import { encodeTronRawData, type TronRawData } from '../../../signing/tron/raw-data.ts';
import { withSuffix } from '../../money/sending/plan-ethereum.ts';
import type { RpcRequest } from '../../money/sending/rpc-sender.ts';
import { readCall } from '../../money/sending/send-calls.ts';
import { suffixed } from '../../money/sending/send-operation.ts';
import { sparkSenders } from '../../money/spark/spark-senders.ts';
import type { SendingMethod } from './rpc-senders.ts';

type Readers = {
  readonly [Method in Exclude<SendingMethod, keyof typeof sparkSenders>]: (
    request: RpcRequest<Method>,
  ) => Promise<readonly ActionUnit[]>;
};

/**
 * The action of a send request, decoded without its chain. Policies do not look at the fields the chain fills in
 * (nonce, gas, fees, blockhash, reference block), so the decision is the same as on execution.
 *
 * @throws SigningInputError and ApiError: the codes for requests that could not be sent.
 */
export async function readSentAction(request: RpcRequest<SendingMethod>): Promise<PolicyAction> {
  // Spark movements are not decoded: only rules for every method apply to them.
  if (Object.hasOwn(sparkSenders, request.method)) return decodeRpcAction(request);
  const read = readers[request.method as keyof Readers] as (given: unknown) => Promise<readonly ActionUnit[]>;
  return { method: request.method, units: await read(request) };
}

const readers: Readers = {
  async eth_sendTransaction({ caip2, params, experimental_data_suffix: dataSuffix }) {
    const given = withSuffix({ transaction: params.transaction, dataSuffix });
    const filled = { ...typeOf(given), nonce: 0, ...given, chain_id: Number(evmChainId(caip2)) };
    const prepared = await prepareEthereumTransaction(filled as EthereumTransaction);
    const units = transactionUnits(await decodeEthereumTransaction(prepared.wireBytes()));
    return withoutSuffix(units, dataSuffix);
  },
  async wallet_sendCalls({ caip2, params, sponsor, experimental_data_suffix: dataSuffix }) {
    const chainId = evmChainId(caip2);
    const calls = params.calls.map((call, index) => readCall(call, `/calls/${index}`));
    const isOperation = sponsor === true;
    const units = (decodeBatch(encodeBatch(calls)) ?? []).map((call, index) => ({
      label: isOperation && calls.length === 1 ? 'transaction' : `call ${index}`,
      // A suffix is appended to the whole batch, outside any call, or to the operation's last call.
      ethereumCall: {
        ...(isOperation && index === calls.length - 1 ? suffixed(call, dataSuffix) : call),
        chainId,
      },
    }));
    return isOperation ? withoutSuffix(units, dataSuffix) : units;
  },
  async signAndSendTransaction({ params }) {
    return decodeSolanaUnits(params.transaction);
  },
  async tron_sendTransaction({ params: { raw_data: rawData } }) {
    const block = { ref_block_bytes: '0000', ref_block_hash: '0000000000000000', expiration: 0 };
    const bytes = encodeTronRawData({ ...block, ...rawData } as TronRawData);
    return decodeTronUnits(bytes) ?? [{ label: 'transaction', undecodable: 'of another kind' }];
  },
};

/** Only an authorization list determines the type; everything else is read as type 2. */
function typeOf(transaction: UnsignedEthereumTransaction): { type?: number } {
  if (transaction.type !== undefined) return {};
  if ('authorization_list' in transaction) return { type: 4 };
  return 'gas_price' in transaction ? { type: 0 } : { type: 2 };
}

function evmChainId(caip2: string): bigint {
  const [, reference] = /^eip155:([0-9]{1,16})$/.exec(caip2) ?? [];
  if (reference === undefined)
    throw invalidField('/caip2', `expected \`eip155:\` and a chain id, got \`${caip2}\``);
  return BigInt(reference);
}
