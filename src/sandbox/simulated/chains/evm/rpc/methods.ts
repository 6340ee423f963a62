import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex } from '../../../../../engine/crypto/encoding.ts';
import type { BroadcastOutcome, Bundler } from '../../../../../ports/chains.ts';
import { termsOf } from '../../chain-terms.ts';
import { NATIVE } from '../../ledger.ts';
import {
  METHOD_NOT_FOUND,
  type RpcCall,
  type RpcCaller,
  RpcError,
  type RpcOutcome,
} from '../../rpc-calls.ts';
import { dryRun } from '../dry-run.ts';
import { type Watch, watched } from '../interpreter.ts';
import { TRANSACTION_GAS_CAP } from '../machine.ts';
import { makeOverlay } from '../overlay.ts';
import type { EvmParts } from '../parts.ts';
import { overlayAfter } from '../reads.ts';
import { findReceipt } from '../receipts.ts';
import { codeAt } from '../state.ts';
import {
  addressOf,
  bytesOf,
  type Call,
  callOf,
  hashText,
  numberOf,
  REVERTED,
  SERVER_ERROR,
} from './calls.ts';
import { type Development, makeDevelopment } from './development.ts';
import { answerOfUpstream, logsOfUpstream, orUpstream } from './earlier-blocks.ts';
import { type Feed, makeFeed } from './feed.ts';
import { knownBlock, logsOf } from './logs.ts';
import {
  createAccessList,
  execute,
  overridden,
  type Place,
  requireIncludable,
  simulateBlocks,
  traceCall,
  traceTransaction,
} from './traces.ts';
import {
  entryPointsOn,
  estimateUserOperation,
  paymasterData,
  paymasterStub,
  sendUserOperation,
  userOperationBy,
  userOperationReceipt,
} from './user-operations.ts';
import { blockView, inBlock, quantity, receiptView, transactionBy } from './views.ts';

/** A chain and the function with which it accepts signed transactions. */
export interface RpcChain {
  readonly parts: EvmParts;
  broadcast(signedBytes: Uint8Array): Promise<BroadcastOutcome>;
  /** The bundler of user operations. Undefined for a chain without them. */
  readonly bundler: Bundler | undefined;
}

interface Served extends RpcChain {
  readonly feed: Feed;
  readonly development: Development;
}

type Method = (chain: Served, params: readonly unknown[], caller: RpcCaller) => unknown;

const MAX_FEE_BLOCKS = 1_024;

/** Returns a function that runs the methods of the Ethereum JSON-RPC on the latest state of a chain. */
export function rpcOf(chain: RpcChain): (call: RpcCall, caller: RpcCaller) => Promise<RpcOutcome> {
  const development = makeDevelopment(chain.parts);
  const served: Served = { ...chain, feed: makeFeed(chain.parts), development };
  return async (call, caller) => {
    const { method, params } = call;
    try {
      const found = Object.hasOwn(methods, method) ? methods[method] : undefined;
      const own = Object.hasOwn(development.methods, method) ? development.methods[method] : undefined;
      if (found === undefined && own === undefined) {
        throw new RpcError(METHOD_NOT_FOUND, `the method ${method} does not exist/is not available`);
      }
      await chain.parts.blocks.catchUp();
      development.begin();
      const earlier = await answerOfUpstream(chain.parts, call);
      if (earlier !== undefined) return earlier;
      const result = await (own === undefined ? found!(served, params, caller) : own(params));
      return { result: await orUpstream(chain.parts, call, result) };
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      const { code, message, data } = error;
      return { error: { code, message, ...(data === undefined ? {} : { data }) } };
    }
  };
}

const methods: Readonly<Record<string, Method>> = {
  // CHOICE: Hardhat's test helpers reject nodes whose version does not begin with this name.
  web3_clientVersion: () => 'HardhatNetwork/custos',
  web3_sha3: (_, [data]) => bytesTo0xHex(keccak_256(bytesOf(data))),
  net_version: ({ parts }) => String(parts.state.chainId),
  net_listening: () => true,
  eth_chainId: ({ parts }) => quantity(parts.state.chainId),
  eth_syncing: () => false,
  eth_accounts: ({ development }) => development.accounts(),
  eth_blockNumber: ({ parts }) => quantity(parts.blocks.head().number),
  eth_gasPrice: ({ parts }) => {
    const { baseFee, priorityFee } = termsOf(parts.caip2);
    return quantity(baseFee + priorityFee);
  },
  eth_maxPriorityFeePerGas: ({ parts }) => quantity(termsOf(parts.caip2).priorityFee),
  eth_blobBaseFee: () => quantity(1n),
  eth_feeHistory: ({ parts }, [count, newest, percentiles]) => feeHistory(parts, count, newest, percentiles),
  eth_getBalance: ({ parts }, [address, block]) =>
    quantity(placeAt(parts, block).state.ledger.balance(addressOf(address), NATIVE)),
  eth_getCode: ({ parts }, [address, block]) =>
    bytesTo0xHex(codeAt(placeAt(parts, block).state, addressOf(address))),
  eth_getStorageAt: ({ parts }, [address, slot, block]) => {
    const key = numberOf(slot, 'slot').toString(16).padStart(64, '0');
    return `0x${placeAt(parts, block).state.bytecode.word(addressOf(address), key)}`;
  },
  eth_getTransactionCount: ({ parts }, [address, block]) => {
    const account = addressOf(address);
    let next = placeAt(parts, block).state.accounts.nonce(account, '');
    if (block !== 'pending') return quantity(next);
    for (const entry of parts.pool.waiting(account, '')) if (entry.nonce === next) next += 1;
    return quantity(next);
  },
  eth_call: async ({ parts }, [call, block, ofState, ofBlock], caller) => {
    const place = overridden(placeAt(parts, block), ofState, ofBlock);
    return bytesTo0xHex((await callOnly(parts, callOf(call), { caller, place })).returned);
  },
  eth_estimateGas: async ({ parts }, [value, block, ofState, ofBlock], caller) => {
    const place = overridden(placeAt(parts, block), ofState, ofBlock);
    const call = callOf(value);
    const { from, to, data, gasPrice, authorizationList, accessList } = call;
    const gas = call.gas < TRANSACTION_GAS_CAP ? call.gas : TRANSACTION_GAS_CAP;
    // Run the call first: it returns the data of a revert, which the estimate does not.
    try {
      await callOnly(parts, { ...call, gas }, { caller, place });
    } catch (error) {
      if (!(error instanceof RpcError) || error.message !== 'out of gas') throw error;
      throw new RpcError(SERVER_ERROR, `gas required exceeds allowance (${gas})`);
    }
    const estimate = await dryRun(watched(await parts.interpreter(), watchOf(caller)), place.state, {
      block: place.block,
      call: { from, to: to ?? undefined, value: call.value, data, gasPrice, authorizationList, accessList },
    });
    if (!estimate.succeeds) throw new RpcError(SERVER_ERROR, estimate.message);
    return quantity(estimate.units);
  },
  eth_sendRawTransaction: async ({ broadcast, development }, [signed]) => {
    const outcome = await broadcast(bytesOf(signed));
    if (!outcome.isAccepted) throw new RpcError(SERVER_ERROR, outcome.message);
    await development.mineSent();
    return outcome.hash;
  },
  eth_getTransactionByHash: ({ parts }, [hash]) => transactionBy(parts, hashText(hash)),
  eth_getTransactionReceipt: ({ parts }, [hash]) => {
    const receipt = findReceipt(parts.state, hashText(hash));
    return receipt === undefined ? null : receiptView(parts, receipt);
  },
  eth_getBlockByNumber: ({ parts }, [block, isFull]) =>
    blockView(parts, knownBlock(parts, block), isFull === true),
  eth_getBlockByHash: ({ parts }, [hash, isFull]) =>
    blockView(parts, knownBlock(parts, { blockHash: hash }), isFull === true),
  eth_getBlockReceipts: ({ parts }, [block]) => {
    const number = knownBlock(parts, block);
    if (number === undefined) return null;
    const all = inBlock(parts, number);
    return all.map((receipt) => receiptView(parts, receipt, all));
  },
  eth_getBlockTransactionCountByNumber: ({ parts }, [block]) => transactionCount(parts, block),
  eth_getBlockTransactionCountByHash: ({ parts }, [blockHash]) => transactionCount(parts, { blockHash }),
  eth_getTransactionByBlockNumberAndIndex: ({ parts }, [block, index]) => transactionAt(parts, block, index),
  eth_getTransactionByBlockHashAndIndex: ({ parts }, [blockHash, index]) =>
    transactionAt(parts, { blockHash }, index),
  eth_getRawTransactionByHash: ({ parts }, [hash]) => parts.pool.find(hashText(hash))?.plan.raw ?? null,
  eth_getLogs: async ({ parts }, [filter]) => {
    const { logs, rest } = await logsOfUpstream(parts, filter);
    return rest === undefined ? logs : [...logs, ...(await logsOf(parts, rest))];
  },
  eth_createAccessList: ({ parts }, params, caller) =>
    createAccessList(parts, watchOf(caller), { place: placeAt(parts, params[1]), params }),
  eth_simulateV1: ({ parts }, params, caller) => simulateBlocks(parts, watchOf(caller), params),
  debug_traceTransaction: ({ parts }, params, caller) => traceTransaction(parts, watchOf(caller), params),
  debug_traceCall: ({ parts }, params, caller) =>
    traceCall(parts, watchOf(caller), { place: placeAt(parts, params[1]), params }),
  eth_supportedEntryPoints: ({ parts, bundler }) => (bundler === undefined ? [] : entryPointsOn(parts)),
  eth_sendUserOperation: async ({ parts, bundler, development }, params) => {
    const hash = await sendUserOperation(parts, bundler, params);
    await development.mineSent();
    return hash;
  },
  eth_estimateUserOperationGas: ({ parts }, params, caller) =>
    estimateUserOperation(parts, watchOf(caller), params),
  eth_getUserOperationByHash: ({ parts }, params) => userOperationBy(parts, params),
  eth_getUserOperationReceipt: ({ parts }, params) => userOperationReceipt(parts, params),
  pm_getPaymasterStubData: ({ parts }, params) => paymasterStub(parts, params),
  pm_getPaymasterData: ({ parts }, params) => paymasterData(parts, params),
  eth_newFilter: ({ feed }, [filter]) => feed.addFilter('logs', filter),
  eth_newBlockFilter: ({ feed }) => feed.addFilter('newHeads', undefined),
  eth_newPendingTransactionFilter: ({ feed }, [isFull]) => feed.addFilter('newPendingTransactions', isFull),
  eth_uninstallFilter: ({ feed }, [id]) => feed.removeFilter(id),
  eth_getFilterChanges: ({ feed }, [id]) => feed.changesOf(id),
  eth_getFilterLogs: ({ parts, feed }, [id]) => logsOf(parts, feed.requestOf(id)),
  eth_subscribe: ({ feed }, [kind, request], { connection }) => feed.subscribe(connection, kind, request),
  eth_unsubscribe: ({ feed }, [id], { connection }) => feed.unsubscribe(connection, id),
  eth_sendTransaction: async ({ development }, [transaction]) => {
    const hash = await development.send(transaction);
    await development.mineSent();
    return hash;
  },
};

/**
 * Returns the state after a block, and the block in which a call on that state runs.
 *
 * CHOICE: simulated chains store only the latest state. The state of an earlier block is reconstructed from what
 * later transactions have read.
 */
function placeAt(parts: EvmParts, block: unknown): Place {
  const number = knownBlock(parts, block);
  if (number === undefined) throw new RpcError(SERVER_ERROR, 'header not found');
  const head = parts.blocks.head();
  if (number >= head.number) return { state: parts.state, block: head };
  const overlay = overlayAfter(parts.state, number);
  if (overlay === undefined) {
    throw new RpcError(SERVER_ERROR, `the state of block ${number} is not kept: use the latest block`);
  }
  return { state: overlay.state, block: { number, seconds: parts.blocks.secondsOf(number) } };
}

/** Returns a watch that ends an execution if its caller disconnects or if it takes too long. */
function watchOf({ signal, isLate }: RpcCaller): Watch {
  return {
    check() {
      if (signal.aborted) throw new RpcError(SERVER_ERROR, 'execution aborted (the caller has left)');
      if (isLate()) throw new RpcError(SERVER_ERROR, 'execution aborted (timeout = 5s)');
    },
  };
}

function transactionCount(parts: EvmParts, block: unknown): string | null {
  const number = knownBlock(parts, block);
  return number === undefined ? null : quantity(inBlock(parts, number).length);
}

function transactionAt(parts: EvmParts, block: unknown, index: unknown) {
  const number = knownBlock(parts, block);
  const receipt = number === undefined ? undefined : inBlock(parts, number)[Number(numberOf(index, 'index'))];
  return receipt === undefined ? null : transactionBy(parts, receipt.hash);
}

async function callOnly(
  parts: EvmParts,
  call: Call,
  { caller, place: { state, block } }: { readonly caller: RpcCaller; readonly place: Place },
) {
  requireIncludable(state, call);
  const interpreter = watched(await parts.interpreter(), watchOf(caller));
  const result = await execute(interpreter, makeOverlay(state), { call, block });
  const { revert } = result;
  if (revert === undefined) return result;
  if (revert.message.startsWith('execution reverted')) {
    throw new RpcError(REVERTED, revert.message, bytesTo0xHex(result.returned));
  }
  throw new RpcError(SERVER_ERROR, revert.message);
}

function feeHistory(parts: EvmParts, count: unknown, newest: unknown, percentiles: unknown) {
  const last = knownBlock(parts, newest);
  if (last === undefined) throw new RpcError(SERVER_ERROR, 'request beyond head block');
  const asked = numberOf(count, 'blockCount');
  const blocks = Math.min(Number(asked > BigInt(MAX_FEE_BLOCKS) ? MAX_FEE_BLOCKS : asked), last + 1);
  const { baseFee, priorityFee } = termsOf(parts.caip2);
  const rewards = Array.isArray(percentiles)
    ? percentiles.slice(0, 100).map(() => quantity(priorityFee))
    : [];
  return {
    oldestBlock: quantity(last - blocks + 1),
    baseFeePerGas: Array.from({ length: blocks + 1 }, () => quantity(baseFee)),
    gasUsedRatio: Array.from({ length: blocks }, () => 0.5),
    ...(rewards.length === 0 ? {} : { reward: Array.from({ length: blocks }, () => rewards) }),
  };
}
