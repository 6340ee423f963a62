import { bytesToHex, hexToBytes, utf8ToBytes } from '../../../../../engine/crypto/encoding.ts';
import {
  ENTRY_POINT_ADDRESS,
  SIMPLE_ACCOUNT_ADDRESS,
} from '../../../../../engine/signing/ethereum/smart-accounts.ts';
import {
  decodeSponsoredOperation,
  hashSponsoredOperation,
  type SponsoredOperation,
} from '../../../../../engine/signing/ethereum/user-operation.ts';
import { addressWord, numberIn, wordOf } from '../contracts/storage-layout.ts';
import type { EvmLog } from '../receipts.ts';
import type { EvmState } from '../state.ts';

// The entry points and their events. Source: account-abstraction, IEntryPoint.sol.

/** The entry points by address, with the versions of their interfaces. */
export const entryPoints: ReadonlyMap<string, '0.7' | '0.8' | '0.9'> = new Map([
  [ENTRY_POINT_ADDRESS, '0.8'],
  ['0x0000000071727de22e5e9d8baf0edac6f37da032', '0.7'],
  ['0x433709009b8330fda32311df1c2afa402ed8d009', '0.9'],
]);

/** Returns the address of an operation's entry point. */
export const entryPointOf = ({ entry_point }: SponsoredOperation): string =>
  entry_point?.toLowerCase() ?? ENTRY_POINT_ADDRESS;

/** Returns whether an operation's account is a contract or becomes one. */
export function isOfContract(
  { state }: { readonly state: EvmState },
  operation: SponsoredOperation,
): boolean {
  if (entryPointOf(operation) !== ENTRY_POINT_ADDRESS) return true;
  const { sender, factory } = operation.user_operation;
  const account = sender.toLowerCase();
  if (operation.authorization !== undefined) {
    return operation.authorization.contract.toLowerCase() !== SIMPLE_ACCOUNT_ADDRESS;
  }
  if (state.accounts.delegate(account) !== undefined) {
    return state.accounts.delegate(account) !== SIMPLE_ACCOUNT_ADDRESS;
  }
  return factory !== undefined || state.bytecode.code(account).length > 0;
}

// keccak256("BeforeExecution()")
const BEFORE_EXECUTION = '0xbb47ee3e183a558b1a2ff0874b079f3fc5478b7454eacf2bfc5af2ff5878f972';
// keccak256("UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)")
const USER_OPERATION = '0x49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f';
// keccak256("UserOperationRevertReason(bytes32,address,uint256,bytes)")
const REVERT_REASON = '0x1c4fada7374c0a9ee8841fc38afe82932dc0f8e69012e927f061a8bae611a201';
// keccak256("PostOpRevertReason(bytes32,address,uint256,bytes)")
const POST_OP_REVERT_REASON = '0xf62676f440ff169a3a9afdbf812e89e7f95975ee8e5c31214ffdef631c5f4792';
// keccak256("AccountDeployed(bytes32,address,address,address)")
const ACCOUNT_DEPLOYED = '0xd51a9c61267aa6196961883ecf5ff2da6619c37dac0fa92122513fb32c032d2d';

const NO_ADDRESS = `0x${'0'.repeat(40)}`;
const ERROR_SELECTOR = '08c379a0';
const REVERTED = 'execution reverted';
/** The maximum size of a reason that the entry point reports, in bytes. */
const MAX_REASON = 2_048;

/** The fields with which every event of an operation begins. Addresses are lower-case 0x hex. */
export interface OperationKey {
  readonly hash: string;
  readonly sender: string;
  readonly nonce: bigint;
  readonly paymaster: string | undefined;
}

/** The outcome of an operation. */
export interface OperationResult {
  readonly succeeds: boolean;
  readonly gasCost: bigint;
  readonly gasUsed: bigint;
}

export const beforeExecution = (address: string): EvmLog => ({
  address,
  topics: [BEFORE_EXECUTION],
  data: '0x',
});

export function userOperationEvent(
  address: string,
  { hash, sender, nonce, paymaster }: OperationKey,
  { succeeds, gasCost, gasUsed }: OperationResult,
): EvmLog {
  return {
    address,
    topics: [USER_OPERATION, hash, topicOf(sender), topicOf(paymaster ?? NO_ADDRESS)],
    data: `0x${[nonce, succeeds, gasCost, gasUsed].map(wordOf).join('')}`,
  };
}

/**
 * Returns the log that reports why an operation reverted.
 *
 * @param reason the data of the revert.
 */
export function revertReason(
  address: string,
  { hash, sender, nonce }: OperationKey,
  { reason, isOfPaymaster = false }: { readonly reason: Uint8Array; readonly isOfPaymaster?: boolean },
): EvmLog {
  const shown = reason.subarray(0, MAX_REASON);
  return {
    address,
    topics: [isOfPaymaster ? POST_OP_REVERT_REASON : REVERT_REASON, hash, topicOf(sender)],
    data: `0x${wordOf(nonce)}${wordOf(64)}${bytesWords(shown)}`,
  };
}

export function accountDeployed(
  address: string,
  { hash, sender, paymaster }: OperationKey,
  factory: string,
): EvmLog {
  return {
    address,
    topics: [ACCOUNT_DEPLOYED, hash, topicOf(sender)],
    data: `0x${addressWord(factory)}${addressWord(paymaster ?? NO_ADDRESS)}`,
  };
}

/** Returns the logs of a transaction that contains only this operation. `logs` are the logs of its calls. */
export function logsOfBundle(
  {
    contract,
    chainId,
    bytes,
  }: { readonly contract: string; readonly chainId: bigint; readonly bytes: string },
  { logs, failure, ...result }: OperationResult & { logs: readonly EvmLog[]; failure: string | undefined },
): readonly EvmLog[] {
  const operation = decodeSponsoredOperation(hexToBytes(bytes.slice(2)));
  const { sender, nonce, paymaster } = operation.user_operation;
  const key = {
    ...{ hash: hashSponsoredOperation(operation, chainId), sender: sender.toLowerCase() },
    ...{ nonce: BigInt(nonce), paymaster: paymaster?.toLowerCase() },
  };
  const reasons = failure === undefined ? [] : [revertReason(contract, key, { reason: errorData(failure) })];
  return [beforeExecution(contract), ...logs, ...reasons, userOperationEvent(contract, key, result)];
}

/** Encodes the message of a revert as `Error(string)`. */
function errorData(message: string): Uint8Array {
  const text = message.startsWith(`${REVERTED}: `) ? message.slice(REVERTED.length + 2) : '';
  if (text === '') return new Uint8Array();
  return hexToBytes(`${ERROR_SELECTOR}${wordOf(32)}${bytesWords(utf8ToBytes(text))}`);
}

/** Finds an operation in the logs of its transaction. Returns undefined if the entry point has not reported it. */
export function findOperation(
  logs: readonly EvmLog[],
  hash: string,
): (OperationResult & { readonly logs: readonly [from: number, to: number]; reason?: string }) | undefined {
  const at = logs.findIndex(({ topics }) => topics[0] === USER_OPERATION && topics[1] === hash);
  const found = logs[at];
  if (found === undefined) return undefined;
  const [, success, gasCost, gasUsed] = found.data.slice(2).match(/.{64}/g) ?? [];
  const before = logs.slice(0, at);
  // The logs of an operation begin after those of the previous one.
  const from = before.findLastIndex(({ topics: [topic = ''] }) =>
    [BEFORE_EXECUTION, USER_OPERATION].includes(topic),
  );
  const revert = before.find(({ topics }) => topics[0] === REVERT_REASON && topics[1] === hash);
  return {
    ...{ succeeds: numberIn(success!) === 1n, gasCost: numberIn(gasCost!), gasUsed: numberIn(gasUsed!) },
    logs: [from + 1, at + 1],
    ...(revert === undefined ? {} : { reason: reasonIn(revert.data) }),
  };
}

/** Returns the reason in the data of `UserOperationRevertReason`, 0x hex. */
function reasonIn(data: string): string {
  const words = data.slice(2 + 2 * 64);
  const digits = 2 * Number(numberIn(words.slice(0, 64)));
  return `0x${words.slice(64, 64 + digits)}`;
}

function topicOf(address: string): string {
  return `0x${addressWord(address)}`;
}

/** Returns the ABI encoding of bytes, without their offset. */
function bytesWords(bytes: Uint8Array): string {
  const digits = bytesToHex(bytes);
  return wordOf(bytes.length) + digits.padEnd(Math.ceil(digits.length / 64) * 64, '0');
}
