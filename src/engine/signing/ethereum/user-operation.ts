import * as UserOperation from 'ox/erc4337/UserOperation';
import { bytesTo0xHex, bytesToUtf8, hexToBytes, utf8ToBytes } from '../../crypto/encoding.ts';
import { parseEvmAddress, parseHexText, parseQuantity, type Quantity } from '../fields.ts';
import { InvalidTransactionError } from '../signing-errors.ts';
import { hashPersonalMessage, signDigestHex } from './signer.ts';
import { ENTRY_POINT_ADDRESS } from './smart-accounts.ts';
import type { SignedAuthorization } from './transaction.ts';

/** An ERC-4337 user operation with the field names of the API. Numbers are 0x hex. */
export interface UserOperationInput {
  readonly sender: string;
  readonly nonce: string;
  readonly call_data: string;
  readonly call_gas_limit: string;
  readonly verification_gas_limit: string;
  readonly pre_verification_gas: string;
  readonly max_fee_per_gas: string;
  readonly max_priority_fee_per_gas: string;
  readonly factory?: string | undefined;
  readonly factory_data?: string | undefined;
  readonly paymaster?: string | undefined;
  readonly paymaster_data?: string | undefined;
  readonly paymaster_verification_gas_limit?: string | undefined;
  readonly paymaster_post_op_gas_limit?: string | undefined;
}

export interface UserOperationParams {
  readonly contract: string;
  readonly chain_id: Quantity;
  readonly user_operation: UserOperationInput;
}

type Version = '0.6' | '0.7' | '0.8' | '0.9';

interface EntryPoint {
  readonly address: `0x${string}`;
  readonly version: Version;
}

const V07: EntryPoint = { address: '0x0000000071727de22e5e9d8baf0edac6f37da032', version: '0.7' };

// The accepted values of `contract`: an entry point, or an account contract that is documented to use a certain entry
// point.
const ENTRY_POINTS: ReadonlyMap<string, EntryPoint> = new Map<string, EntryPoint>([
  [
    '0x5ff137d4b0fdcd49dca30c7cf57e578a026d2789',
    { address: '0x5ff137d4b0fdcd49dca30c7cf57e578a026d2789', version: '0.6' },
  ],
  [V07.address, V07],
  [
    '0x4337084d9e255ff0702461cf8895ce9e3b5ff108',
    { address: '0x4337084d9e255ff0702461cf8895ce9e3b5ff108', version: '0.8' },
  ],
  [
    '0x433709009b8330fda32311df1c2afa402ed8d009',
    { address: '0x433709009b8330fda32311df1c2afa402ed8d009', version: '0.9' },
  ],
  // Semi-modular account for EIP-7702 delegation
  ['0x69007702764179f14f51cdce752f4f775d74e139', V07],
  // Kernel v3.3
  ['0xd6cedde84be40893d153be9d467cd6ad37875b28', V07],
]);

/**
 * Executes `eth_signUserOperation`: returns 0x hex of r || s || v (27/28). Source: ERC-4337.
 *
 * @throws InvalidTransactionError, InvalidFieldError
 */
export function signUserOperation(secret: Uint8Array, params: UserOperationParams): `0x${string}` {
  const { hash, version } = hashUserOperation(params);
  // Accounts of entry points 0.6 and 0.7 verify the hash as an EIP-191 message. Since 0.8 the hash is an EIP-712
  // digest and is signed directly.
  const isTypedData = version === '0.8' || version === '0.9';
  return signDigestHex(isTypedData ? hash : hashPersonalMessage(hash), secret);
}

/** Returns the hash of a user operation under the rules of the entry point of `contract`. */
export function hashUserOperation(params: UserOperationParams): { hash: Uint8Array; version: Version } {
  const contract = parseEvmAddress(params.contract, '/contract');
  const entryPoint = ENTRY_POINTS.get(contract);
  if (entryPoint === undefined) {
    throw new InvalidTransactionError(
      '/contract',
      `expected an entry point (0.6 to 0.9) or an account contract known to use one, got \`${params.contract}\``,
    );
  }
  const operation = readOperation(params.user_operation);
  const hash = UserOperation.hash(
    hashedOperation(entryPoint, operation, params.user_operation) as UserOperation.UserOperation,
    {
      chainId: Number(parseQuantity(params.chain_id, '/chain_id', 52)),
      entryPointAddress: entryPoint.address,
      entryPointVersion: entryPoint.version,
    },
  );
  return { hash: hexToBytes(hash.slice(2)), version: entryPoint.version };
}

type Operation = ReturnType<typeof readOperation>;

function hashedOperation({ version }: EntryPoint, operation: Operation, input: UserOperationInput): object {
  if (version === '0.6') return toVersion06(operation, input);
  if (version === '0.7') return operation;
  refuseDelegateMarker(operation);
  return version === '0.8' ? operation : withoutPaymasterSignature(operation);
}

/** 0x7702 and 18 zero bytes. Source: account-abstraction v0.8, Eip7702Support.sol. */
const DELEGATE_MARKER = '0x7702000000000000000000000000000000000000';

/**
 * Rejects the delegate marker.
 *
 * CHOICE: the entry point replaces the marker with the delegate, which the request does not name.
 */
function refuseDelegateMarker({ factory }: { readonly factory?: string }): void {
  if (factory !== DELEGATE_MARKER) return;
  throw new InvalidTransactionError(
    '/user_operation/factory',
    'expected no EIP-7702 marker: the entry point hashes the delegate in its place, which the request does not name; ' +
      'send the authorization with an operation without `factory`',
  );
}

// keccak256("PaymasterSignature")[:8]. Source: account-abstraction v0.9, UserOperationLib.sol.
const PAYMASTER_SIGNATURE_MAGIC = '22e325a297439656';
const LENGTH_DIGITS = 4;

/**
 * Returns the operation as entry point 0.9 hashes it. Paymaster data may end with a signature, the signature's length
 * (2 bytes) and a magic number. The signature and the length are then omitted from the hash, because the paymaster
 * may sign after the account.
 */
function withoutPaymasterSignature(operation: Operation): object {
  const { paymasterData = '0x' } = operation as { readonly paymasterData?: string };
  const body = paymasterData.slice(2, -PAYMASTER_SIGNATURE_MAGIC.length);
  if (!paymasterData.endsWith(PAYMASTER_SIGNATURE_MAGIC) || body.length < LENGTH_DIGITS) return operation;
  const before = body.slice(0, -LENGTH_DIGITS);
  const digits = 2 * Number.parseInt(body.slice(-LENGTH_DIGITS), 16);
  if (digits === 0) return operation;
  if (digits > before.length) {
    throw new InvalidTransactionError(
      '/user_operation/paymaster_data',
      `expected a paymaster signature of at most ${before.length / 2} bytes before its length, got ${digits / 2}`,
    );
  }
  return { ...operation, paymasterData: `0x${before.slice(0, -digits)}${PAYMASTER_SIGNATURE_MAGIC}` };
}

function readOperation(input: UserOperationInput) {
  assertPairs(input);
  const at = '/user_operation';
  const { factory, paymaster } = input;
  return {
    sender: parseEvmAddress(input.sender, `${at}/sender`),
    nonce: parseQuantity(input.nonce, `${at}/nonce`, 256),
    callData: parseHexText(input.call_data, `${at}/call_data`),
    callGasLimit: parseQuantity(input.call_gas_limit, `${at}/call_gas_limit`, 128),
    verificationGasLimit: parseQuantity(input.verification_gas_limit, `${at}/verification_gas_limit`, 128),
    preVerificationGas: parseQuantity(input.pre_verification_gas, `${at}/pre_verification_gas`, 256),
    maxFeePerGas: parseQuantity(input.max_fee_per_gas, `${at}/max_fee_per_gas`, 128),
    maxPriorityFeePerGas: parseQuantity(
      input.max_priority_fee_per_gas,
      `${at}/max_priority_fee_per_gas`,
      128,
    ),
    ...(factory === undefined
      ? {}
      : {
          factory: parseEvmAddress(factory, `${at}/factory`),
          factoryData: parseHexText(input.factory_data ?? '0x', `${at}/factory_data`),
        }),
    ...(paymaster === undefined ? {} : readPaymaster(input, paymaster)),
  };
}

function readPaymaster(input: UserOperationInput, paymaster: string) {
  const at = '/user_operation';
  return {
    paymaster: parseEvmAddress(paymaster, `${at}/paymaster`),
    paymasterData: parseHexText(input.paymaster_data ?? '0x', `${at}/paymaster_data`),
    paymasterVerificationGasLimit: parseQuantity(
      input.paymaster_verification_gas_limit ?? 0,
      `${at}/paymaster_verification_gas_limit`,
      128,
    ),
    paymasterPostOpGasLimit: parseQuantity(
      input.paymaster_post_op_gas_limit ?? 0,
      `${at}/paymaster_post_op_gas_limit`,
      128,
    ),
  };
}

// If a field of the factory or of the paymaster is given, requires the address too, because the hash covers these
// fields only together with the address.
function assertPairs(input: UserOperationInput): void {
  const unpaired =
    input.factory === undefined && input.factory_data !== undefined
      ? 'factory_data'
      : (['paymaster_data', 'paymaster_verification_gas_limit', 'paymaster_post_op_gas_limit'] as const).find(
          (field) => input.paymaster === undefined && input[field] !== undefined,
        );
  if (unpaired !== undefined) {
    const required = unpaired === 'factory_data' ? 'factory' : 'paymaster';
    throw new InvalidTransactionError(
      `/user_operation/${unpaired}`,
      `expected \`${required}\` together with \`${unpaired}\``,
    );
  }
}

// initCode = factory || factoryData; paymasterAndData = paymaster || paymasterData
function toVersion06(operation: Operation, input: UserOperationInput) {
  for (const field of ['paymaster_verification_gas_limit', 'paymaster_post_op_gas_limit'] as const) {
    if (input[field] !== undefined) {
      throw new InvalidTransactionError(
        `/user_operation/${field}`,
        `expected no \`${field}\` for entry point 0.6`,
      );
    }
  }
  const { factory, factoryData, paymaster, paymasterData, ...rest } = operation as Operation & {
    factory?: string;
    factoryData?: string;
    paymaster?: string;
    paymasterData?: string;
  };
  return {
    ...rest,
    initCode: factory === undefined ? '0x' : `${factory}${(factoryData ?? '0x').slice(2)}`,
    paymasterAndData: paymaster === undefined ? '0x' : `${paymaster}${(paymasterData ?? '0x').slice(2)}`,
  };
}

/** A signed user operation for a bundler, with the EIP-7702 authorization that the account may still need. */
export interface SponsoredOperation {
  readonly user_operation: UserOperationInput & { readonly signature: string };
  readonly authorization?: SignedAuthorization | undefined;
  /** The entry point, if it is not 0.8. */
  readonly entry_point?: string | undefined;
}

/** Returns the params of `eth_signUserOperation` for entry point 0.8. */
export function sponsoredOperationParams({
  chainId,
  operation,
}: {
  readonly chainId: number;
  readonly operation: UserOperationInput;
}): UserOperationParams {
  return { contract: ENTRY_POINT_ADDRESS, chain_id: chainId, user_operation: operation };
}

/** Returns the hash of an operation as 0x hex. */
export function hashSponsoredOperation(
  { user_operation, entry_point }: SponsoredOperation,
  chainId: bigint,
): string {
  const contract = entry_point ?? ENTRY_POINT_ADDRESS;
  return bytesTo0xHex(hashUserOperation({ contract, chain_id: Number(chainId), user_operation }).hash);
}

/** Encodes an operation as UTF-8 JSON, the form in which it is stored and sent to the bundler. */
export function encodeSponsoredOperation(operation: SponsoredOperation): Uint8Array {
  return utf8ToBytes(JSON.stringify(operation));
}

/**
 * Decodes the result of `encodeSponsoredOperation`.
 *
 * @throws InvalidTransactionError if the bytes are not a signed user operation.
 */
export function decodeSponsoredOperation(bytes: Uint8Array): SponsoredOperation {
  try {
    const decoded = JSON.parse(bytesToUtf8(bytes) ?? '') as Partial<SponsoredOperation>;
    if (typeof decoded.user_operation?.signature === 'string') return decoded as SponsoredOperation;
  } catch {
    // The error below rejects the bytes.
  }
  throw new InvalidTransactionError('', 'expected a signed user operation');
}
