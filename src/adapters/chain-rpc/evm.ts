import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex } from '../../engine/crypto/encoding.ts';
import { encodeTokenCall } from '../../engine/signing/ethereum/contract-calls.ts';
import type { EvmAuthorization, EvmCall, EvmChain, Simulation } from '../../ports/chains.ts';
import type { Log } from '../../ports/runtime.ts';
import { NodeError, readBytes, readQuantity, readRecord } from './endpoint.ts';
import {
  classifyRefusal,
  evmStatusOf,
  isAlreadyKnown,
  revertReason,
  simulateSequence,
} from './evm-status.ts';
import {
  type EvmTransfersOptions,
  evmTransfersAfter,
  movementsOf,
  transferSource,
  transfersAwait,
} from './evm-transfers.ts';
import {
  allEqual,
  makeNodes,
  type Nodes,
  type ObserveDisagreement,
  type ObserveNode,
  type Read,
  WrongChainError,
} from './nodes.ts';

/** The tip for nodes without `eth_maxPriorityFeePerGas`, in wei per gas. */
const DEFAULT_PRIORITY_FEE = 1_000_000_000n;
const METHOD_NOT_FOUND = -32601;

/** The maximum difference between the latest block times of nodes. */
const TIME_TOLERANCE_SECONDS = 600;

/** The maximum factor between the base fees of nodes that are a few blocks apart. */
const FEE_TOLERANCE = 2n;
/** Base fees below this count as equal, because factors between tiny amounts mean nothing. In wei per gas. */
const SMALL_FEE = 1_000_000_000n;

export interface EvmOptions extends Pick<EvmTransfersOptions, 'confirmations' | 'namedTokens'> {
  readonly caip2: string;
  readonly urls: readonly string[];
  readonly log: Log;
  readonly compareAgainMs?: number | undefined;
  /** The number of cells that read the transfers of the chain. Undefined: nothing that was read is kept. */
  readonly cells?: number | undefined;
  readonly observe?: ObserveNode | undefined;
  readonly observeDisagreement?: ObserveDisagreement | undefined;
}

/** Connects to an EVM chain through JSON-RPC. */
export function connectEvm(options: EvmOptions): EvmChain {
  const { caip2, log, confirmations, namedTokens } = options;
  const chainId = BigInt(caip2.slice('eip155:'.length));
  const nodes = makeNodes({
    ...options,
    async checkChain(ask) {
      const found = readQuantity('eth_chainId', await ask('eth_chainId'));
      if (found !== chainId) throw new WrongChainError(caip2, `eip155:${found}`);
    },
  });
  const source = transferSource({ nodes, caip2, log, confirmations, namedTokens }, options.cells);
  return {
    kind: 'evm',
    caip2,
    chainId,
    balances: (address, tokens) => Promise.all(tokens.map((token) => balanceOf(nodes, address, token))),
    nonce: (address) =>
      nodes.compare({
        what: `the nonce of \`${address}\``,
        ask: async (read) => readQuantity('nonce', await read('eth_getTransactionCount', address, 'pending')),
        settle: allEqual(String),
      }),
    fees: () => feesOf(nodes),
    latestSeconds: () =>
      nodes.compare({ what: 'the time of the latest block', ask: readSeconds, settle: settleSeconds }),
    simulate: (calls) => simulateSequence(nodes, calls, (call) => simulate(nodes, call)),
    movementsOf: (hash) => movementsOf(nodes, hash),
    read({ to, data, isConstant = false, settle = isConstant ? settleConstant : undefined }) {
      if (settle === undefined) return readContract(nodes.read, to, data);
      return nodes.compare({
        what: `the contract \`${to}\``,
        ask: (read) => readContract(read, to, data),
        settle: (answers) => wrapAnswer(settle(answers)),
      });
    },
    code: async (address) => readBytes('eth_getCode', await nodes.read('eth_getCode', address, 'latest')),
    async broadcast(signedBytes) {
      const hash = bytesTo0xHex(keccak_256(signedBytes));
      const params = [bytesTo0xHex(signedBytes)];
      const outcome = await nodes.send({ method: 'eth_sendRawTransaction', params, isAlreadyKnown });
      if (outcome.isAccepted) return { isAccepted: true, hash };
      return { isAccepted: false, ...classifyRefusal(outcome.refusal), isPartial: !outcome.isByAll };
    },
    statusOf: (hash, signedBytes) => evmStatusOf(nodes, hash, signedBytes),
    transfersAfter: (reading) => evmTransfersAfter(source, reading),
    transfersAwait: (position) => transfersAwait(source, position),
  };
}

async function balanceOf(nodes: Nodes, address: string, token: string | null): Promise<bigint> {
  if (token === null)
    return readQuantity('eth_getBalance', await nodes.read('eth_getBalance', address, 'latest'));
  const answer = await readContract(
    nodes.read,
    token,
    encodeTokenCall({ name: 'balanceOf', owner: address }),
  );
  // If there is no token contract at the address, the call returns no data: the balance is 0.
  return answer.length < 32 ? 0n : BigInt(bytesTo0xHex(answer.subarray(0, 32)));
}

async function readSeconds(read: Read): Promise<number> {
  const block = readRecord('block', await read('eth_getBlockByNumber', 'latest', false));
  return Number(readQuantity('timestamp', block.timestamp));
}

/** Chooses the earliest time, so that no node can move a deadline to a later time than the others would. */
function settleSeconds(times: readonly number[]): { readonly answer: number } | undefined {
  const earliest = Math.min(...times);
  return Math.max(...times) - earliest > TIME_TOLERANCE_SECONDS ? undefined : { answer: earliest };
}

function settleConstant(answers: readonly Uint8Array[]): Uint8Array | undefined {
  return allEqual<Uint8Array>(bytesTo0xHex)(answers)?.answer;
}

function wrapAnswer<T>(answer: T | undefined): { readonly answer: T } | undefined {
  return answer === undefined ? undefined : { answer };
}

/**
 * Makes a read-only call of a contract and returns the result.
 *
 * CHOICE: a call that reverts returns no data, like a call to an address without a contract.
 */
async function readContract(read: Read, to: string, data: Uint8Array): Promise<Uint8Array> {
  try {
    return readBytes('eth_call', await read('eth_call', { to, data: bytesTo0xHex(data) }, 'latest'));
  } catch (error) {
    if (error instanceof NodeError && revertReason(error) !== undefined) return new Uint8Array();
    throw error;
  }
}

/** The fees that a node suggests, in wei per gas. */
interface FeeReading {
  /** The base fee, or the gas price of a chain without EIP-1559. */
  readonly price: bigint;
  /** The priority fee per gas. Undefined on a chain without EIP-1559. */
  readonly tip: bigint | undefined;
}

async function feesOf(nodes: Nodes): ReturnType<EvmChain['fees']> {
  const { price, tip } = await nodes.compare({ what: 'the fees', ask: readFees, settle: settleFees });
  if (tip === undefined) return { maxFeePerGas: price, maxPriorityFeePerGas: undefined };
  // Twice the base fee stays sufficient for six consecutive full blocks.
  return { maxFeePerGas: 2n * price + tip, maxPriorityFeePerGas: tip };
}

async function readFees(read: Read): Promise<FeeReading> {
  const block = readRecord('block', await read('eth_getBlockByNumber', 'latest', false));
  if (block.baseFeePerGas === undefined || block.baseFeePerGas === null) {
    return { price: readQuantity('eth_gasPrice', await read('eth_gasPrice')), tip: undefined };
  }
  return { price: readQuantity('baseFeePerGas', block.baseFeePerGas), tip: await priorityFee(read) };
}

/**
 * Returns the fees on which the nodes agree; undefined if they contradict each other.
 *
 * CHOICE: prices must agree within a factor of two, and the lower median is used. Each node computes its tip in its own
 * way. The lower median is used there too, so that one node among several cannot raise the tip.
 */
function settleFees(readings: readonly FeeReading[]): { readonly answer: FeeReading } | undefined {
  const prices = readings.map(({ price }) => price);
  const tips = readings.map(({ tip }) => tip).filter((tip) => tip !== undefined);
  if (tips.length !== 0 && tips.length !== readings.length) return undefined;
  const [lowest, highest] = [inOrder(prices, 0), inOrder(prices, prices.length - 1)];
  if (highest > FEE_TOLERANCE * lowest && highest > SMALL_FEE) return undefined;
  return { answer: { price: inOrder(prices), tip: tips.length === 0 ? undefined : inOrder(tips) } };
}

/**
 * Returns the median of the values, the lower one of two. A given `place` selects another position in ascending
 * order.
 *
 * @param values at least one.
 */
function inOrder(values: readonly bigint[], place = (values.length - 1) >> 1): bigint {
  return values.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))[place]!;
}

async function priorityFee(read: Read): Promise<bigint> {
  try {
    return readQuantity('eth_maxPriorityFeePerGas', await read('eth_maxPriorityFeePerGas'));
  } catch (error) {
    if (error instanceof NodeError && error.code === METHOD_NOT_FOUND) return DEFAULT_PRIORITY_FEE;
    throw error;
  }
}

async function simulate(nodes: Nodes, call: EvmCall): Promise<Simulation> {
  const { from, to, value, data, authorizationList, delegatedTo } = call;
  const transaction = {
    from,
    ...(to === undefined ? {} : { to }),
    value: `0x${value.toString(16)}`,
    ...(data.length === 0 ? {} : { data: bytesTo0xHex(data) }),
    ...(authorizationList === undefined ? {} : { authorizationList: authorizationList.map(toRpc) }),
  };
  const overrides =
    delegatedTo === undefined ? [] : [{ [from]: { code: `0xef0100${delegatedTo.slice(2).toLowerCase()}` } }];
  try {
    const [units, held] = await Promise.all([
      nodes.read('eth_estimateGas', transaction, 'latest', ...overrides),
      value === 0n ? 0n : balanceOf(nodes, from, null),
    ]);
    // Some nodes do not check the balance when they estimate a plain transfer.
    if (held < value) {
      return { succeeds: false, reason: 'insufficient_funds', message: 'insufficient funds for transfer' };
    }
    return { succeeds: true, units: readQuantity('eth_estimateGas', units) };
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    return { succeeds: false, ...classifyRefusal(error) };
  }
}

function toRpc({ contract, chainId, nonce, signature }: EvmAuthorization) {
  return {
    address: contract,
    chainId: `0x${chainId.toString(16)}`,
    nonce: `0x${nonce.toString(16)}`,
    r: toQuantity(signature.slice(2, 66)),
    s: toQuantity(signature.slice(66, 130)),
    yParity: toQuantity(signature.slice(130)),
  };
}

// Quantities have no leading zeros.
function toQuantity(hex: string): string {
  return `0x${BigInt(`0x${hex}`).toString(16)}`;
}
