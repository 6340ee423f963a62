import { sha256 } from '@noble/hashes/sha2.js';
import { decimalText } from '../../../engine/assets/decimal.ts';
import { concatBytes, hexToBytes, utf8ToBytes } from '../../../engine/crypto/encoding.ts';
import type { ConditionInput } from '../../../engine/policy/condition-source.ts';
import { parseTronAddress, tronAddressText } from '../../../engine/policy/values.ts';
import { bytesField, int64Field } from '../../../engine/signing/tron/protobuf.ts';
import {
  encodeTronRawData,
  type TronContract,
  tronContractTypes,
} from '../../../engine/signing/tron/raw-data.ts';
import { tokenFunctions } from './lint-ethereum-calls.ts';
import {
  boundaryNumbers,
  bytesRequest,
  distinct,
  type Effect,
  hashRequest,
  type LintSubject,
  MAX_RECEIVERS,
  namedValues,
  rpc,
  type TriedRequest,
  transferRequest,
} from './lint-requests.ts';

const MAINNET = 'tron:0x2b6653dc';
const SENDER = `41${'11'.repeat(20)}`;
const STRANGER = `41${'de'.repeat(20)}`;
const SOME_TOKEN = `41${'c0'.repeat(20)}`;
const TRX_DECIMALS = 6;
const SAFE = BigInt(Number.MAX_SAFE_INTEGER);
const MAX_TOKENS = 2;
const FEE_LIMIT = 100_000_000;
/** 2100-01-01 in Unix ms. */
const EXPIRATION = 4_102_444_800_000;

const isCalldata = ({ field_source: source }: ConditionInput): boolean =>
  source === 'tron_trigger_smart_contract_data';

/**
 * Yields payments and token transfers with the values that conditions name, and other requests that move the same
 * amounts.
 */
export function* tronEffects(subject: LintSubject): Generator<Effect> {
  const { conditions } = subject;
  const owner = parseTronAddress(subject.sender ?? '') ?? SENDER;
  const named = (isMeant: (condition: ConditionInput) => boolean) => namedValues(conditions, isMeant);
  const ofFields = (...fields: string[]) => named(({ field }) => fields.includes(field));
  const receivers = addressesIn(ofFields('TransferContract.to_address', 'destination.address'));
  for (const to of distinct([STRANGER, ...receivers], MAX_RECEIVERS)) {
    for (const amount of boundaryNumbers(ofFields('TransferContract.amount'), SAFE)) {
      yield paymentEffect(owner, to, amount);
    }
  }
  if (!conditions.some(isCalldata)) return;
  const values = named(isCalldata);
  const contracts = addressesIn(ofFields('TriggerSmartContract.contract_address'));
  const to = distinct([STRANGER, ...receivers, ...addressesIn(values)], MAX_RECEIVERS);
  for (const token of distinct([SOME_TOKEN, ...contracts], MAX_TOKENS)) {
    for (const receiver of to) {
      const amounts = boundaryNumbers(
        values.filter((value) => parseTronAddress(value) === undefined && value.length < 40),
        2n ** 256n,
      );
      for (const amount of amounts) yield tokenEffect(owner, { token, receiver, amount });
    }
  }
}

function addressesIn(values: readonly string[]): readonly string[] {
  return values.flatMap((value) => {
    const evm = /^0x[0-9a-f]{40}$/i.test(value) ? `41${value.slice(2).toLowerCase()}` : undefined;
    return parseTronAddress(value) ?? evm ?? [];
  });
}

interface Requests {
  readonly calls: readonly TriedRequest[];
  readonly bytes: Uint8Array;
}

function requestsOf(contract: TronContract, more: Pick<TriedRequest, 'marks' | 'token'> = {}): Requests {
  const raw_data = {
    ...{ contract: [contract], ref_block_bytes: '0000', ref_block_hash: '0000000000000000' },
    ...{ expiration: EXPIRATION, timestamp: 0, fee_limit: FEE_LIMIT },
  };
  const { contract: list, fee_limit } = raw_data;
  const bytes = encodeTronRawData(raw_data);
  const raw = { ...bytesRequest(bytes, 'sha256', 'signTransactionBytes'), ...more };
  return {
    calls: [
      rpc('tron_signTransaction', { params: { raw_data } }, more),
      rpc(
        'tron_sendTransaction',
        { caip2: MAINNET, params: { raw_data: { contract: list, fee_limit } } },
        more,
      ),
      raw,
    ],
    bytes,
  };
}

function hashOf({ bytes }: Requests) {
  const requests = [hashRequest(sha256(bytes), 'signTransactionBytes')];
  return { kind: 'hash_signing' as const, of: 'tron_signTransaction', requests };
}

function paymentEffect(owner: string, to: string, amount: bigint): Effect {
  const contract = { type: 'TransferContract', owner_address: owner, to_address: to } as const;
  const payment = requestsOf({ ...contract, amount: Number(amount) });
  const source = {
    asset: 'trx',
    amount: decimalText({ digits: amount, scale: TRX_DECIMALS }),
    chain: 'tron',
  };
  const transfer =
    amount === 0n ? [] : [transferRequest({ source, destination: { address: tronAddressText(to) } })];
  const [token] = tokenCalls(owner, { token: SOME_TOKEN, receiver: to, amount: 1n });
  return {
    calls: [...payment.calls, ...transfer],
    others: [
      hashOf(payment),
      { kind: 'sibling_call', requests: [permissionUpdate(owner)] },
      ...payment.calls.map(({ method: of }, index) => ({
        kind: 'token_transfer' as const,
        of,
        requests: [token!.calls[index]!],
      })),
    ],
  };
}

/**
 * Returns a request that gives the account away by changing its owner permission to another account. `raw_sign` signs
 * such bytes. Source: TRON protocol, core/contract/account_contract.proto.
 */
function permissionUpdate(owner: string): TriedRequest {
  const [account, stranger] = [owner, STRANGER].map(hexToBytes) as [Uint8Array, Uint8Array];
  const key = concatBytes(bytesField(1, stranger), int64Field(2, 1n));
  const permission = concatBytes(bytesField(3, utf8ToBytes('owner')), int64Field(4, 1n), bytesField(7, key));
  const type = 'AccountPermissionUpdateContract';
  const any = concatBytes(
    bytesField(1, utf8ToBytes(`type.googleapis.com/protocol.${type}`)),
    bytesField(2, concatBytes(bytesField(1, account), bytesField(2, permission))),
  );
  const bytes = concatBytes(
    bytesField(1, new Uint8Array(2)),
    bytesField(4, new Uint8Array(8)),
    int64Field(8, BigInt(EXPIRATION)),
    bytesField(11, concatBytes(int64Field(1, tronContractTypes[type]), bytesField(2, any))),
  );
  return bytesRequest(bytes, 'sha256', 'signTransactionBytes');
}

interface TokenTerms {
  readonly token: string;
  readonly receiver: string;
  readonly amount: bigint;
}

function tokenCalls(owner: string, { token, receiver, amount }: TokenTerms): readonly Requests[] {
  const [from, to] = [owner, receiver].map((address) => `0x${address.slice(2).toLowerCase()}`) as [
    string,
    string,
  ];
  const functions = tokenFunctions({ owner: from, to, amount, source: 'tron_trigger_smart_contract_data' });
  return functions.map(({ data, marks }) =>
    requestsOf(
      {
        ...{ type: 'TriggerSmartContract', owner_address: owner, contract_address: token },
        data: data.slice(2),
      },
      { marks, token },
    ),
  );
}

function tokenEffect(owner: string, terms: TokenTerms): Effect {
  const [transfer, ...siblings] = tokenCalls(owner, terms);
  return {
    calls: transfer!.calls,
    others: [
      hashOf(transfer!),
      ...transfer!.calls.map(({ method: of }, index) => ({
        kind: 'sibling_call' as const,
        of,
        requests: siblings.map(({ calls }) => calls[index]!),
      })),
    ],
  };
}
