import * as AbiFunction from 'ox/AbiFunction';
import * as AbiParameters from 'ox/AbiParameters';
import { bytesTo0xHex, bytesToHex, hexToBytes, utf8ToBytes } from '../../../../../engine/crypto/encoding.ts';
import { contractAddress } from '../../../../../engine/signing/ethereum/signer.ts';
import type { Block } from '../../pool.ts';
import { addressIn, addressWord, memberSlot, numberIn, wordOf } from '../contracts/storage-layout.ts';
import { OPERATION_LANE } from '../machine.ts';
import type { EvmState } from '../state.ts';
import { entryPoints } from './events.ts';
import { type Frame, ProgramRevertError } from './frames.ts';

/**
 * The entry point of ERC-4337, as a native program instead of bytecode, because the license of its source (GPL) is
 * not compatible with ours. Its functions, events, errors and the storage layout of its deposits are those of
 * account-abstraction 0.7 to 0.9.
 *
 * NOTE: aggregators are not supported.
 */

const PACKED =
  'struct PackedUserOperation { address sender; uint256 nonce; bytes initCode; bytes callData; bytes32 accountGasLimits; uint256 preVerificationGas; bytes32 gasFees; bytes paymasterAndData; bytes signature; }';
const handleOps = AbiFunction.from([
  PACKED,
  'function handleOps(PackedUserOperation[] ops, address beneficiary)',
]);
const getUserOpHash = AbiFunction.from([
  PACKED,
  'function getUserOpHash(PackedUserOperation userOp) returns (bytes32)',
]);
const selectorOf = (signature: string): string => AbiFunction.getSelector(signature).slice(2);
const bytesParameter = AbiParameters.from('bytes');
const operationParameter = AbiParameters.from([PACKED, 'PackedUserOperation userOp']);

export type PackedOperation = ReturnType<typeof decodeHandleOps>[0][number];

function decodeHandleOps(data: Uint8Array) {
  return AbiFunction.decodeData(handleOps, bytesTo0xHex(data));
}

/** Encodes the calldata with which a bundler runs one operation. */
export function encodeHandleOps(operation: PackedOperation, beneficiary: string): string {
  return AbiFunction.encodeData(handleOps, [[operation], beneficiary as `0x${string}`]);
}

/** The state, the block and the functions that the entry point uses while it runs. */
export interface EntryPointContext {
  readonly state: EvmState;
  readonly block: Block;
  /** Runs the operations of `handleOps`. */
  readonly handle: (
    frame: Frame,
    operations: readonly PackedOperation[],
    beneficiary: string,
  ) => Promise<void>;
  readonly hashOf: (contract: string, operation: PackedOperation) => string;
}

const NONCE_GAS = 2_300n;
const READ_GAS = 2_600n;
const WRITE_GAS = 8_000n;
/** The topics of the events in IStakeManager.sol: keccak256 of their signatures. */
const topics = {
  Deposited: '0x2da466a7b24304f47e87fa2e1e5a81b9831ce54fec19055ce277ca2f39ba42c4',
  Withdrawn: '0xd1c19fbcd4551a5edfb66d43d2e337c04837afda3482b42bdf569a8fccdae5fb',
  StakeLocked: '0xa5ae833d0bb1dcd632d98a8b70973e8516812898e19bf27b70071ebc8dc52c01',
  StakeUnlocked: '0xfa9b3c14cc825c412c9ed81b3ba365a5b459439403f18829e572ed53a4180f0a',
  StakeWithdrawn: '0xb7c918e0e249f999e965cafeb6c664271b3f4317d296461500e71da39f0cbda3',
} as const;
const ERROR_SELECTOR = '08c379a0';

/** Returns the revert that `require(…, message)` causes. */
export function requirement(message: string): ProgramRevertError {
  const text = bytesToHex(utf8ToBytes(message));
  const padded = text.padEnd(Math.ceil(text.length / 64) * 64, '0');
  return new ProgramRevertError(hexToBytes(ERROR_SELECTOR + wordOf(32) + wordOf(text.length / 2) + padded));
}

/**
 * Returns the contract that calls factories for the entry point. It is the first contract that the entry point's
 * constructor creates.
 */
export function senderCreatorOf(entryPoint: string): string {
  return contractAddress(entryPoint, 1).toLowerCase();
}

/** Returns the nonce lane of an account's key at an entry point. */
export function laneOf(entryPoint: string, key: bigint): string {
  const version = entryPoints.get(entryPoint);
  return `${OPERATION_LANE}${version === '0.8' ? '' : `${version} `}${key.toString(16)}`;
}

/** The deposit of an account at an entry point. */
export interface Deposit {
  readonly amount: bigint;
  readonly stake: bigint;
  readonly isStaked: boolean;
  readonly unstakeDelaySeconds: bigint;
  readonly withdrawSeconds: bigint;
}

// Source: StakeManager.sol: mapping(address => DepositInfo) deposits, in slot 0. The second word has, from the lowest
// bit: staked (8), stake (112), unstakeDelaySec (32), withdrawTime (48).
const depositSlots = (account: string): readonly [string, string] => {
  const first = memberSlot(wordOf(0), addressWord(account));
  return [first, wordOf(BigInt.asUintN(256, numberIn(first) + 1n))];
};
const bits = (word: bigint, from: number, count: number): bigint =>
  BigInt.asUintN(count, word >> BigInt(from));

export function depositOf({ bytecode }: EvmState, entryPoint: string, account: string): Deposit {
  const [first, second] = depositSlots(account);
  const word = numberIn(bytecode.word(entryPoint, second));
  return {
    amount: numberIn(bytecode.word(entryPoint, first)),
    ...{ isStaked: bits(word, 0, 8) === 1n, stake: bits(word, 8, 112) },
    ...{ unstakeDelaySeconds: bits(word, 120, 32), withdrawSeconds: bits(word, 152, 48) },
  };
}

export function setDeposit(
  { bytecode }: EvmState,
  entryPoint: string,
  account: string,
  deposit: Deposit,
): void {
  const { amount, stake, isStaked, unstakeDelaySeconds, withdrawSeconds } = deposit;
  const [first, second] = depositSlots(account);
  bytecode.setWord(entryPoint, first, wordOf(amount));
  const word = BigInt(isStaked) | (stake << 8n) | (unstakeDelaySeconds << 120n) | (withdrawSeconds << 152n);
  bytecode.setWord(entryPoint, second, wordOf(word));
}

/** Splits the arguments of a call into words. Missing words are zero. */
const words = (data: Uint8Array): string[] => {
  const text = bytesToHex(data.subarray(4));
  return [0, 1].map((at) => text.slice(at * 64, at * 64 + 64).padEnd(64, '0'));
};

const bytesOfWords = (...values: (bigint | number | boolean)[]): Uint8Array =>
  hexToBytes(values.map(wordOf).join(''));

type EntryPointFunction = (frame: Frame, context: EntryPointContext) => Promise<Uint8Array> | Uint8Array;

const functions: ReadonlyMap<string, EntryPointFunction> = new Map<string, EntryPointFunction>([
  [
    selectorOf('getNonce(address,uint192)'),
    (frame, { state }) => {
      frame.charge(NONCE_GAS);
      const [sender, key] = words(frame.data) as [string, string];
      const nonce = state.accounts.nonce(addressIn(sender), laneOf(frame.address, numberIn(key)));
      return bytesOfWords(BigInt.asUintN(256, (numberIn(key) << 64n) | BigInt(nonce)));
    },
  ],
  [
    selectorOf('incrementNonce(uint192)'),
    (frame, { state: { accounts } }) => {
      frame.requireWritable();
      frame.charge(WRITE_GAS);
      const lane = laneOf(frame.address, numberIn(words(frame.data)[0]!));
      accounts.setNonce(frame.caller, lane, accounts.nonce(frame.caller, lane) + 1);
      return new Uint8Array();
    },
  ],
  [
    selectorOf('balanceOf(address)'),
    (frame, { state }) => {
      frame.charge(READ_GAS);
      return bytesOfWords(depositOf(state, frame.address, addressIn(words(frame.data)[0]!)).amount);
    },
  ],
  [
    selectorOf('getDepositInfo(address)'),
    (frame, { state }) => {
      frame.charge(2n * READ_GAS);
      const found = depositOf(state, frame.address, addressIn(words(frame.data)[0]!));
      const { amount, isStaked, stake, unstakeDelaySeconds, withdrawSeconds } = found;
      return bytesOfWords(amount, isStaked, stake, unstakeDelaySeconds, withdrawSeconds);
    },
  ],
  [
    selectorOf('depositTo(address)'),
    (frame, { state }) => deposit(frame, state, addressIn(words(frame.data)[0]!)),
  ],
  [selectorOf('withdrawTo(address,uint256)'), withdraw],
  [selectorOf('addStake(uint32)'), addStake],
  [selectorOf('unlockStake()'), unlockStake],
  [selectorOf('withdrawStake(address)'), withdrawStake],
  [selectorOf('senderCreator()'), (frame) => bytesOfWords(BigInt(senderCreatorOf(frame.address)))],
  [selectorOf('getSenderAddress(bytes)'), getSenderAddress],
  [
    AbiFunction.getSelector(getUserOpHash).slice(2),
    (frame, { hashOf }) => {
      frame.charge(READ_GAS);
      const input = bytesTo0xHex(frame.data.subarray(4));
      const [operation] = decoded(() => AbiParameters.decode(operationParameter, input));
      return hexToBytes(hashOf(frame.address, operation).slice(2));
    },
  ],
  [
    AbiFunction.getSelector(handleOps).slice(2),
    async (frame, { handle }) => {
      frame.requireWritable();
      const [operations, beneficiary] = decoded(() => decodeHandleOps(frame.data));
      await handle(frame, operations, beneficiary.toLowerCase());
      return new Uint8Array();
    },
  ],
]);

/** Executes a call to an entry point. */
export async function callEntryPoint(frame: Frame, context: EntryPointContext): Promise<Uint8Array> {
  // A plain transfer is a deposit for its sender.
  if (frame.data.length === 0) return deposit(frame, context.state, frame.caller);
  const run = functions.get(bytesToHex(frame.data.subarray(0, 4)));
  if (run === undefined) throw requirement('the simulated entry point has no such function');
  return run(frame, context);
}

function decoded<T>(decode: () => T): T {
  try {
    return decode();
  } catch {
    throw new ProgramRevertError(new Uint8Array());
  }
}

function deposit(frame: Frame, state: EvmState, account: string): Uint8Array {
  frame.requireWritable();
  frame.charge(WRITE_GAS);
  const found = depositOf(state, frame.address, account);
  const amount = found.amount + frame.value;
  setDeposit(state, frame.address, account, { ...found, amount });
  log(frame, 'Deposited', account, `0x${wordOf(amount)}`);
  return new Uint8Array();
}

async function withdraw(frame: Frame, { state }: EntryPointContext): Promise<Uint8Array> {
  frame.requireWritable();
  frame.charge(WRITE_GAS);
  const [to, amount] = words(frame.data) as [string, string];
  const found = depositOf(state, frame.address, frame.caller);
  if (numberIn(amount) > found.amount) throw requirement('Withdraw amount too large');
  setDeposit(state, frame.address, frame.caller, { ...found, amount: found.amount - numberIn(amount) });
  log(frame, 'Withdrawn', frame.caller, `0x${to}${amount}`);
  await pay(frame, addressIn(to), numberIn(amount), 'failed to withdraw');
  return new Uint8Array();
}

function addStake(frame: Frame, { state }: EntryPointContext): Uint8Array {
  frame.requireWritable();
  frame.charge(WRITE_GAS);
  const found = depositOf(state, frame.address, frame.caller);
  const delay = BigInt.asUintN(32, numberIn(words(frame.data)[0]!));
  if (delay === 0n) throw requirement('must specify unstake delay');
  if (delay < found.unstakeDelaySeconds) throw requirement('cannot decrease unstake time');
  const stake = found.stake + frame.value;
  if (stake === 0n) throw requirement('no stake specified');
  const next = { ...found, stake, isStaked: true, unstakeDelaySeconds: delay, withdrawSeconds: 0n };
  setDeposit(state, frame.address, frame.caller, next);
  log(frame, 'StakeLocked', frame.caller, `0x${wordOf(stake)}${wordOf(delay)}`);
  return new Uint8Array();
}

function unlockStake(frame: Frame, { state, block }: EntryPointContext): Uint8Array {
  frame.requireWritable();
  frame.charge(WRITE_GAS);
  const found = depositOf(state, frame.address, frame.caller);
  if (found.unstakeDelaySeconds === 0n) throw requirement('not staked');
  if (!found.isStaked) throw requirement('already unstaking');
  const withdrawSeconds = BigInt(block.seconds) + found.unstakeDelaySeconds;
  setDeposit(state, frame.address, frame.caller, { ...found, isStaked: false, withdrawSeconds });
  log(frame, 'StakeUnlocked', frame.caller, `0x${wordOf(withdrawSeconds)}`);
  return new Uint8Array();
}

async function withdrawStake(frame: Frame, { state, block }: EntryPointContext): Promise<Uint8Array> {
  frame.requireWritable();
  frame.charge(WRITE_GAS);
  const found = depositOf(state, frame.address, frame.caller);
  if (found.stake === 0n) throw requirement('No stake to withdraw');
  if (found.withdrawSeconds === 0n) throw requirement('must call unlockStake() first');
  if (found.withdrawSeconds > BigInt(block.seconds)) throw requirement('Stake withdrawal is not due');
  const none = { stake: 0n, unstakeDelaySeconds: 0n, withdrawSeconds: 0n };
  setDeposit(state, frame.address, frame.caller, { ...found, ...none });
  const to = words(frame.data)[0]!;
  log(frame, 'StakeWithdrawn', frame.caller, `0x${to}${wordOf(found.stake)}`);
  await pay(frame, addressIn(to), found.stake, 'failed to withdraw stake');
  return new Uint8Array();
}

/**
 * Sends native assets.
 *
 * @throws ProgramRevertError with `fault` if the recipient rejects them.
 */
export async function pay(frame: Frame, to: string, value: bigint, fault: string): Promise<void> {
  if (value === 0n) return;
  const { succeeds } = await frame.call({ to, value, gas: 100_000n });
  if (!succeeds) throw requirement(fault);
}

/** Calls a factory. Returns the account that it has created, or address zero if the call fails. */
export async function createSender(
  frame: Frame,
  { initCode, gas }: { readonly initCode: Uint8Array; readonly gas: bigint },
): Promise<{ readonly sender: string; readonly gasUsed: bigint }> {
  const { succeeds, returned, gasUsed } = await frame.call({
    ...{ from: senderCreatorOf(frame.address), to: bytesTo0xHex(initCode.subarray(0, 20)) },
    ...{ data: initCode.subarray(20), gas },
  });
  const isAddress = succeeds && returned.length >= 32;
  return { sender: addressIn(isAddress ? bytesToHex(returned.subarray(0, 32)) : wordOf(0)), gasUsed };
}

// error SenderAddressResult(address sender)
const SENDER_ADDRESS_RESULT = '6ca7b806';

/** Reverts with the address of the account that a factory would create. */
async function getSenderAddress(frame: Frame): Promise<Uint8Array> {
  const data = decoded(() => AbiParameters.decode(bytesParameter, bytesTo0xHex(frame.data.subarray(4)))[0]);
  const { sender } = await createSender(frame, { initCode: hexToBytes(data.slice(2)), gas: 5_000_000n });
  throw new ProgramRevertError(hexToBytes(SENDER_ADDRESS_RESULT + addressWord(sender)));
}

function log(frame: Frame, event: keyof typeof topics, account: string, data: string): void {
  frame.log({ address: frame.address, topics: [topics[event], `0x${addressWord(account)}`], data });
}
