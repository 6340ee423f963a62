import { bytesTo0xHex } from '../../../../../engine/crypto/encoding.ts';
import { checksumAddress } from '../../../../../engine/signing/ethereum/signer.ts';
import { NATIVE } from '../../ledger.ts';
import { invalid, isRecord, RpcError } from '../../rpc-calls.ts';
import {
  type AccessList,
  type ExecutionBlock,
  type Interpreter,
  type Watch,
  watched,
} from '../interpreter.ts';
import { BLOCK_GAS_LIMIT, include, runEvm } from '../machine.ts';
import { makeOverlay, type Overlay } from '../overlay.ts';
import type { EvmParts } from '../parts.ts';
import { gasBefore, planAuthorizations } from '../plan.ts';
import { recallReads } from '../reads.ts';
import { findReads, findReceipt, TRANSFER_TOPIC } from '../receipts.ts';
import type { EvmState } from '../state.ts';
import { type Call, callOf, hashText, SERVER_ERROR } from './calls.ts';
import { overriddenBlock, overriddenState } from './overrides.ts';
import { tracerOf } from './tracers.ts';
import { blockView, quantity } from './views.ts';

/** CHOICE: the maximum number of blocks, and of calls, in one simulation. */
const MAX_BLOCKS = 256;
const MAX_CALLS = 1_000;
const MAX_ROUNDS = 8;
/** The address that logs use for the native asset. Source: ERC-7528. */
const NATIVE_LOG = '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee';

/** Executes an included transaction again, on the state that it read when it was included. */
export async function traceTransaction(
  parts: EvmParts,
  watch: Watch,
  [hash, options]: readonly unknown[],
): Promise<unknown> {
  const { state, pool } = parts;
  const receipt = findReceipt(state, hashText(hash));
  if (receipt === undefined) throw new RpcError(SERVER_ERROR, 'transaction not found');
  const [entry, reads] = [pool.find(receipt.hash), findReads(state, receipt.hash)];
  if (entry === undefined || reads === undefined) {
    throw new RpcError(SERVER_ERROR, 'the transaction is a deposit of the sandbox, which executes nothing');
  }
  const { tracer, resultOf } = tracerOf(options);
  const overlay = makeOverlay(state, recallReads(reads));
  const interpreter = watched(await parts.interpreter(), { ...watch, tracer });
  const { receipt: made } = await include(interpreter, overlay, { entry, block: receipt.block });
  const { gasUsed, isReverted } = made;
  return resultOf({ overlay, gasLimit: entry.plan.gasLimit, gasUsed, isReverted });
}

/** The state on which a call runs, and the block in which it runs. Executions write to an overlay of their own. */
export interface Place {
  readonly state: EvmState;
  readonly block: ExecutionBlock;
}

/**
 * Returns the place with the changes of a caller.
 *
 * @throws RpcError
 */
export function overridden({ state, block }: Place, ofState: unknown, ofBlock: unknown): Place {
  return { state: overriddenState(state, ofState), block: overriddenBlock(block, ofBlock) };
}

export async function traceCall(
  parts: EvmParts,
  watch: Watch,
  { place, params: [value, , options] }: { place: Place; params: readonly unknown[] },
): Promise<unknown> {
  const call = callOf(value);
  const { tracer, resultOf } = tracerOf(options);
  const { stateOverrides, blockOverrides } = isRecord(options) ? options : {};
  const { state, block } = overridden(place, stateOverrides, blockOverrides);
  const overlay = makeOverlay(state);
  const interpreter = watched(await parts.interpreter(), { ...watch, tracer });
  const { gasUsed, revert } = await execute(interpreter, overlay, { call, block });
  return resultOf({ overlay, gasLimit: call.gas, gasUsed, isReverted: revert !== undefined });
}

/**
 * Returns the access list of a call, which names the accounts and slots that the call uses. Also returns the gas of the
 * call with that list. Source: geth, eth_createAccessList.
 */
export async function createAccessList(
  parts: EvmParts,
  watch: Watch,
  { place, params: [value, , stateOverrides] }: { place: Place; params: readonly unknown[] },
): Promise<object> {
  const call = callOf(value);
  const { state, block } = overridden(place, stateOverrides, undefined);
  const interpreter = watched(await parts.interpreter(), watch);
  let accessList: AccessList = [];
  for (let round = 0; ; round += 1) {
    const overlay = makeOverlay(state);
    const { gasUsed, revert } = await execute(interpreter, overlay, { call, block, accessList });
    const used = accessed(overlay, call);
    if (JSON.stringify(used) === JSON.stringify(accessList) || round === MAX_ROUNDS) {
      const error = revert === undefined ? {} : { error: revert.message };
      return { accessList, gasUsed: quantity(gasUsed), ...error };
    }
    accessList = used;
  }
}

function accessed(overlay: Overlay, { from, to }: Call): AccessList {
  const slots = new Map<string, string[]>();
  for (const [key] of overlay.cells()) {
    const [kind, address = '', slot = ''] = key.split(' ');
    if (kind !== 'word' && kind !== 'code') continue;
    const isListed = kind === 'word' || (address !== from && address !== to && !isPrecompile(address));
    if (!isListed) continue;
    const known = slots.get(address) ?? [];
    if (kind === 'word') known.push(`0x${slot}`);
    slots.set(address, known);
  }
  return [...slots]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([address, storageKeys]) => ({ address, storageKeys: storageKeys.sort() }));
}

function isPrecompile(address: string): boolean {
  return BigInt(address) <= 0x100n;
}

/** Runs a call as a transaction without a fee. */
export async function execute(
  interpreter: Interpreter,
  overlay: Overlay,
  {
    call,
    block,
    accessList = call.accessList,
  }: { call: Call; block: ExecutionBlock; accessList?: AccessList },
) {
  const { accounts } = overlay.state;
  const { from: sender, to, value, data, gas, gasPrice, authorizationList } = call;
  const calls = [{ to, value, data: bytesTo0xHex(data) }];
  accounts.setNonce(sender, '', accounts.nonce(sender, '') + 1);
  const plan = {
    ...{ sender, calls, accessList, gasLimit: gas < BLOCK_GAS_LIMIT ? gas : BLOCK_GAS_LIMIT, sentinel: null },
    authorizations: planAuthorizations(authorizationList),
    ...gasBefore(calls, { accessList, authorizations: authorizationList }),
  };
  return runEvm(interpreter, overlay, plan, { gasPrice, block, isIncluded: false });
}

/**
 * Requires that a block could include the call as a transaction.
 *
 * @throws RpcError like geth.
 */
export function requireIncludable({ ledger }: EvmState, call: Call): void {
  const { from: sender, to, value, data, accessList, authorizationList: authorizations } = call;
  const calls = [{ to, value, data: bytesTo0xHex(data) }];
  const { intrinsicGas, floorGas } = gasBefore(calls, { accessList, authorizations });
  const gasLimit = call.gas < BLOCK_GAS_LIMIT ? call.gas : BLOCK_GAS_LIMIT;
  const held = ledger.balance(sender, NATIVE);
  if (held < value) {
    const account = checksumAddress(sender.slice(2));
    const fault = `insufficient funds for gas * price + value: address ${account} have ${held} want ${value}`;
    throw new RpcError(SERVER_ERROR, `err: ${fault} (supplied gas ${gasLimit})`);
  }
  const isBelowIntrinsic = gasLimit < intrinsicGas;
  if (isBelowIntrinsic || gasLimit < floorGas) {
    const fault = isBelowIntrinsic
      ? `intrinsic gas too low: have ${gasLimit}, want ${intrinsicGas}`
      : `insufficient gas for floor data gas cost: have ${gasLimit}, want ${floorGas}`;
    throw new RpcError(SERVER_ERROR, `err: ${fault} (supplied gas ${gasLimit})`);
  }
}

/** Executes calls in simulated blocks after the latest one, without storing anything. Source: geth, eth_simulateV1. */
export async function simulateBlocks(
  parts: EvmParts,
  watch: Watch,
  [value]: readonly unknown[],
): Promise<unknown> {
  if (!isRecord(value) || !Array.isArray(value.blockStateCalls)) {
    throw invalid('invalid argument: expected `blockStateCalls`');
  }
  if (value.validation === true) throw invalid('`validation` is not supported');
  const all = value.blockStateCalls as readonly unknown[];
  if (all.length > MAX_BLOCKS) throw invalid(`expected at most ${MAX_BLOCKS} blocks, got ${all.length}`);
  const interpreter = watched(await parts.interpreter(), watch);
  let block: ExecutionBlock = parts.blocks.head();
  let state: EvmState = parts.state;
  let count = 0;
  const results: unknown[] = [];
  for (const each of all) {
    if (!isRecord(each)) throw invalid('invalid argument: expected blocks');
    const { calls = [], stateOverrides, blockOverrides } = each;
    const next = { number: block.number + 1, seconds: block.seconds + 12 };
    ({ state, block } = overridden({ state, block: next }, stateOverrides, blockOverrides));
    const { number, seconds, header = {} } = block;
    const made: object[] = [];
    let gasInBlock = 0n;
    if (!Array.isArray(calls)) throw invalid('invalid argument: expected `calls`');
    for (const call of calls) {
      count += 1;
      if (count > MAX_CALLS) throw invalid(`expected at most ${MAX_CALLS} calls`);
      const run = await simulate(interpreter, state, {
        call: callOf(call),
        block,
        index: made.length,
        traces: value.traceTransfers === true,
      });
      state = run.state;
      gasInBlock += run.gasUsed;
      made.push(run.view);
    }
    const view = blockView(parts, parts.blocks.head().number, false)!;
    results.push({
      ...{ ...view, number: quantity(number), timestamp: quantity(seconds), gasUsed: quantity(gasInBlock) },
      ...(header.baseFee === undefined ? {} : { baseFeePerGas: quantity(header.baseFee) }),
      ...(header.gasLimit === undefined ? {} : { gasLimit: quantity(header.gasLimit) }),
      ...(header.coinbase === undefined ? {} : { miner: header.coinbase }),
      ...(header.prevRandao === undefined ? {} : { mixHash: header.prevRandao }),
      ...{
        parentHash: parts.forks.hashOf(number - 1),
        hash: parts.forks.hashOf(number),
        transactions: [],
        calls: made,
      },
    });
  }
  return results;
}

async function simulate(
  interpreter: Interpreter,
  before: EvmState,
  { call, block, index, traces }: { call: Call; block: ExecutionBlock; index: number; traces: boolean },
) {
  const overlay = makeOverlay(before);
  const run = await execute(interpreter, overlay, { call, block });
  const { revert, gasUsed, logs, movements, returned } = run;
  const moved = traces ? movements.filter(({ asset }) => asset === NATIVE).map(nativeLog) : [];
  const place = { blockNumber: quantity(block.number), transactionIndex: quantity(index), removed: false };
  const view = {
    ...{ status: revert === undefined ? '0x1' : '0x0', gasUsed: quantity(gasUsed) },
    returnData: bytesTo0xHex(returned),
    logs: [...moved, ...logs].map((log, at) => ({ ...log, ...place, logIndex: quantity(at) })),
    ...(revert === undefined
      ? {}
      : {
          error: {
            code: revert.message.startsWith('execution reverted') ? 3 : -32_015,
            message: revert.message,
            data: bytesTo0xHex(returned),
          },
        }),
  };
  return { state: overlay.state, gasUsed, view };
}

function nativeLog({ sender, recipient, amount }: { sender: string; recipient: string; amount: bigint }) {
  const word = (text: string): string => `0x${text.padStart(64, '0')}`;
  const topics = [TRANSFER_TOPIC, word(sender.slice(2)), word(recipient.slice(2))];
  return { address: NATIVE_LOG, topics, data: word(amount.toString(16)) };
}
