import {
  createEVM,
  type EVM,
  type EVMResult,
  type ExecResult,
  type InterpreterStep,
  type Message,
} from '@ethereumjs/evm';
import { Address, createAddressFromString } from '@ethereumjs/util';
import { bytesTo0xHex, hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { ENTRY_POINT_ADDRESS } from '../../../../engine/signing/ethereum/smart-accounts.ts';
import { createMutex } from '../../../../storage/mutex.ts';
import { type Movement, NATIVE, RevertError } from '../ledger.ts';
import type { Block } from '../pool.ts';
import { hasNativeAsset } from '../sponsors.ts';
import type { Abis } from './abis.ts';
import { chainRules } from './chain-rules.ts';
import { revertOf } from './execution-faults.ts';
import type { Forks } from './forks.ts';
import { boundedRevert, pausingAfter, pausingHash } from './opcodes.ts';
import type { Overlay } from './overlay.ts';
import { longPrecompiles } from './precompiles.ts';
import { type EvmLog, TRANSFER_TOPIC } from './receipts.ts';
import { hashOf } from './state.ts';
import { stateManagerOf, textOf } from './state-manager.ts';
import { settle, settled, type Upstream } from './upstream.ts';
import { callEntryPoint } from './user-operations/entry-point.ts';
import { entryPoints } from './user-operations/events.ts';
import { runProgram } from './user-operations/frames.ts';
import { handleOperations, type OperationEstimate } from './user-operations/handle-operations.ts';
import { hashOfPacked } from './user-operations/packed-operation.ts';

// Runs bytecode in @ethereumjs/evm on top of an overlay.

/** How long an execution may block the event loop before other work gets a turn. */
const SLICE_MS = 10;
const JUMPDEST = 0x5b;
const JUMPS_PER_LOOK = 512;

/** A block in which calls run. `header` overrides fields of the block's own header. */
export interface ExecutionBlock extends Block {
  readonly header?: {
    /** Lower-case 0x hex. */
    readonly coinbase?: string;
    readonly prevRandao?: string;
    readonly gasLimit?: bigint;
    readonly baseFee?: bigint;
    readonly blobBaseFee?: bigint;
  };
}

/** A call, or without `to` the creation of a smart contract. Addresses are lower-case 0x hex. */
interface TopCall {
  readonly from: string;
  readonly to: string | null;
  readonly value: bigint;
  readonly data: Uint8Array;
  readonly gasLimit: bigint;
  readonly gasPrice: bigint;
  /** Addresses and slots of the transaction's access list. */
  readonly accessList: AccessList;
  /** The signers of the transaction's authorizations (EIP-7702). */
  readonly authorities?: readonly string[];
}

export type AccessList = readonly { readonly address: string; readonly storageKeys: readonly string[] }[];

interface CallResult {
  readonly gasUsed: bigint;
  readonly refund: bigint;
  /** The return data or the revert data. For a creation, the code of the new contract. */
  readonly returned: Uint8Array;
  readonly revert: RevertError | undefined;
  readonly logs: readonly EvmLog[];
}

/** Runs the calls of one transaction. */
interface Calls {
  /**
   * The movements of assets in order, without those of reverted calls.
   *
   * NOTE: if a contract destroys itself, its native asset moves without an entry in this list.
   */
  readonly movements: Movement[];
  run(call: TopCall): Promise<CallResult>;
}

/** Executes the calls of one chain's transactions, one transaction at a time. */
export interface Interpreter {
  transaction<T>(
    overlay: Overlay,
    block: ExecutionBlock,
    work: (calls: Calls) => Promise<T>,
    watch?: Watch,
  ): Promise<T>;
}

/** Ends executions early, and observes them. */
export interface Watch {
  /** Called repeatedly during the execution. If it throws, the execution ends with that error. */
  readonly check?: () => void;
  readonly tracer?: Tracer;
  readonly estimate?: OperationEstimate;
}

/** Observes an execution. */
export interface Tracer {
  enter?(message: Message): void;
  exit?(result: EVMResult): void;
  step?(step: InterpreterStep): void;
}

/** Returns an interpreter that applies `watch` to each of its executions. */
export function watched(interpreter: Interpreter, watch: Watch): Interpreter {
  return {
    transaction: (overlay, block, work, more) =>
      interpreter.transaction(overlay, block, work, { ...watch, ...more }),
  };
}

interface Running {
  readonly overlay: Overlay;
  readonly block: ExecutionBlock;
  readonly movements: Movement[];
  /** The messages that have not ended, with the number of movements before each. */
  readonly open: { readonly message: Message; readonly movementsBefore: number }[];
  readonly watch: Watch;
  /** When other work gets its next turn. */
  pauseMs: number;
}

interface InterpreterParts {
  readonly forks: Pick<Forks, 'hashOf'>;
  readonly abis: Pick<Abis, 'error'>;
  /** The real chain that the chain forks. Its state may not have been fetched yet. */
  readonly upstream: Upstream | undefined;
}

export async function makeInterpreter(
  chainId: bigint,
  { forks, abis, upstream }: InterpreterParts,
): Promise<Interpreter> {
  const mutex = createMutex();
  let running: Running | undefined;
  const current = (): Running => {
    if (running === undefined) throw new Error('expected an execution to be running');
    return running;
  };
  let jumps = 0;
  const rules = chainRules(chainId);
  const stateManager = stateManagerOf(
    () => current().overlay,
    () => pause(current()),
  );
  const evm = await createEVM({
    common: rules,
    stateManager: upstream === undefined ? stateManager : settled(stateManager),
    blockchain: blockchainOf(forks),
    customPrecompiles: [
      ...longPrecompiles(() => current().watch.check?.()),
      // On a chain that forks a real one, other entry points are those of the real chain.
      ...[...entryPoints.keys()]
        .filter((address) => upstream === undefined || address === ENTRY_POINT_ADDRESS)
        .map((address) => ({ address: addressOf(address), function: () => runEntryPoint(evm, current()) })),
    ],
    customOpcodes: [
      boundedRevert(rules),
      // Every loop executes a JUMPDEST, so a long execution pauses there for other work.
      pausingAfter(rules, JUMPDEST, () => {
        jumps = (jumps + 1) % JUMPS_PER_LOOK;
        return jumps === 0 ? pause(current()) : undefined;
      }),
      pausingHash(rules, () => pause(current())),
    ],
  });
  evm.events.on('beforeMessage', (message) => {
    const { movements, open } = current();
    open.push({ message, movementsBefore: movements.length });
    current().watch.tracer?.enter?.(message);
    const { to } = message;
    if (to !== undefined) recordValue(current(), message, to);
  });
  evm.events.on('afterMessage', (result) => {
    const { execResult, createdAddress } = result;
    const { movements, open } = current();
    current().watch.tracer?.exit?.(result);
    const { message, movementsBefore } = open.pop()!;
    if (execResult.exceptionError !== undefined) movements.length = movementsBefore;
    else if (createdAddress !== undefined) recordValue(current(), message, createdAddress);
  });
  return {
    async transaction(overlay, block, work, watch = {}) {
      await mutex.acquire();
      const onStep = (step: InterpreterStep): void => watch.tracer?.step?.(step);
      const started = { overlay, block, movements: [], open: [] };
      running = { ...started, watch, pauseMs: performance.now() + SLICE_MS };
      try {
        // The execution may have become late during the pause.
        watch.check?.();
        // The interpreter does more work per step while a listener is registered.
        if (watch.tracer?.step !== undefined) evm.events.on('step', onStep);
        const { movements } = running;
        return await work({
          movements,
          run: (call) => runTopCall(evm, current(), { call, abis }),
        });
      } finally {
        evm.events.removeListener('step', onStep);
        evm.journal.cleanJournal();
        evm.transientStorage.clear();
        running = undefined;
        mutex.release();
      }
    },
  };
}

/** Runs the entry point that the innermost message calls. */
function runEntryPoint(
  evm: EVM,
  { overlay: { state }, block, movements, open, watch }: Running,
): Promise<ExecResult> {
  const { message } = open.at(-1)!;
  const attempt = async (work: () => Promise<boolean>): Promise<void> => {
    const before = movements.length;
    await evm.journal.checkpoint();
    evm.transientStorage.checkpoint();
    if (await work()) {
      await evm.journal.commit();
      evm.transientStorage.commit();
      return;
    }
    await evm.journal.revert();
    evm.transientStorage.revert();
    movements.length = before;
  };
  return runProgram(evm, message, attempt, (frame) =>
    callEntryPoint(frame, {
      ...{ state, block },
      hashOf: (contract, operation) => hashOfPacked(state, contract, operation),
      handle: (running, operations, beneficiary) =>
        handleOperations(running, { state, block, estimate: watch.estimate }, { operations, beneficiary }),
    }),
  );
}

function recordValue({ movements }: Running, message: Message, to: Address): void {
  const isInPlace = message.depth > 0 && message.caller.equals(to);
  if (message.delegatecall || message.value === 0n || isInPlace) return;
  const [sender, recipient] = [textOf(message.caller), textOf(to)];
  movements.push({ sender, recipient, asset: NATIVE, amount: message.value });
}

/** Returns the movements of tokens that have bytecode. Source: ERC-20, event Transfer(address, address, uint256). */
function transfersIn({ state }: Overlay, logs: readonly EvmLog[]): Movement[] {
  return logs.flatMap(({ address, topics: [topic, from, to, ...others], data }) => {
    if (topic !== TRANSFER_TOPIC || from === undefined || to === undefined) return [];
    if (others.length > 0 || data.length !== 66 || state.bytecode.code(address).length === 0) return [];
    const [sender, recipient] = [from, to].map((word) => `0x${word.slice(26)}`) as [string, string];
    return [{ sender, recipient, asset: address, amount: BigInt(data) }];
  });
}

async function runTopCall(
  evm: EVM,
  running: Running,
  { call, abis }: { call: TopCall; abis: Pick<Abis, 'error'> },
): Promise<CallResult> {
  const { overlay, block } = running;
  const { state } = overlay;
  const none = { gasUsed: 0n, refund: 0n, returned: new Uint8Array(), logs: [] };
  if (call.value > 0n && !hasNativeAsset(state)) {
    const revert = new RevertError('expected no value on a chain without a native asset', true);
    return { ...none, revert };
  }
  if (state.ledger.balance(call.from, NATIVE) < call.value) {
    return { ...none, revert: new RevertError('insufficient funds for transfer', true) };
  }
  const header = headerOf(block, state.baseFee);
  warm(evm, call, header.coinbase);
  const to = call.to === null ? {} : { to: addressOf(call.to) };
  const result = await evm.runCall({
    ...{ caller: addressOf(call.from), ...to, value: call.value, data: call.data },
    ...{ gasLimit: call.gasLimit, gasPrice: call.gasPrice, skipNonceIncrement: true },
    block: { header },
  });
  const { execResult } = result;
  const logs = (execResult.logs ?? []).map(([address, topics, data]) => ({
    address: bytesTo0xHex(address),
    topics: topics.map((topic) => bytesTo0xHex(topic)),
    data: bytesTo0xHex(data),
  }));
  running.movements.push(...transfersIn(overlay, logs));
  for (const address of execResult.selfdestruct?.keys() ?? []) {
    // A contract that existed before keeps its code and its storage (EIP-6780).
    if (execResult.createdAddresses?.has(address) !== true) continue;
    overlay.erase(address);
    state.accounts.setNonce(address, '', 0);
  }
  const refund = execResult.gasRefund ?? 0n;
  const returned = execResult.returnValue;
  const revert = revertOf(execResult, abis);
  return { gasUsed: execResult.executionGasUsed, refund, returned, revert, logs };
}

/**
 * Marks addresses and slots as warm before the execution: the sender, the recipient, precompiles, the transaction's
 * access list and the signers of its authorizations (EIP-2929, 2930, 3651, 7702).
 */
function warm(
  { journal, precompiles }: EVM,
  { from, to, accessList, authorities = [] }: TopCall,
  coinbase: Address,
): void {
  journal.addAlwaysWarmAddress(from);
  if (to !== null) journal.addAlwaysWarmAddress(to);
  journal.addAlwaysWarmAddress(coinbase.toString());
  for (const address of authorities) journal.addAlwaysWarmAddress(address);
  for (const address of precompiles.keys()) journal.addAlwaysWarmAddress(address);
  for (const { address, storageKeys } of accessList) {
    journal.addAlwaysWarmAddress(address);
    for (const slot of storageKeys) journal.addAlwaysWarmSlot(address, slot);
  }
}

async function pause(running: Running): Promise<void> {
  if (performance.now() < running.pauseMs) return;
  await new Promise((resolve) => setImmediate(resolve));
  running.watch.check?.();
  running.pauseMs = performance.now() + SLICE_MS;
}

const COINBASE = new Address(new Uint8Array(20));
const GAS_LIMIT = 30_000_000n;

function headerOf({ number, seconds, header = {} }: ExecutionBlock, baseFee: bigint) {
  const { coinbase, prevRandao = hashOf(`randomness of block ${number}`), blobBaseFee = 1n } = header;
  return {
    number: BigInt(number),
    coinbase: coinbase === undefined ? COINBASE : addressOf(coinbase),
    timestamp: BigInt(seconds),
    difficulty: 0n,
    prevRandao: hexToBytes(prevRandao.slice(2)),
    gasLimit: header.gasLimit ?? GAS_LIMIT,
    baseFeePerGas: header.baseFee ?? baseFee,
    getBlobGasPrice: () => blobBaseFee,
  };
}

function blockchainOf(forks: Pick<Forks, 'hashOf'>) {
  const blockchain = {
    async getBlock(number: number) {
      const hash = await settle(() => forks.hashOf(number));
      return { hash: () => hexToBytes(hash.slice(2)) };
    },
    putBlock: async () => undefined,
    shallowCopy: () => blockchain,
  };
  return blockchain;
}

function addressOf(text: string): Address {
  return createAddressFromString(text);
}
