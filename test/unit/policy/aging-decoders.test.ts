import {
  ScriptTransactionArgumentVariants,
  TransactionExecutableVariants,
  TransactionExtraConfigVariants,
  TransactionInnerPayloadVariants,
  TransactionPayloadVariants,
  TypeTagVariants,
} from '@aptos-labs/ts-sdk';
import { bcs } from '@mysten/sui/bcs';
import * as system from '@solana-program/system';
import * as token from '@solana-program/token';
import { utils } from 'tronweb';
import { describe, expect, test } from 'vitest';
import { decodeRawSignAction } from '../../../src/engine/actions/decode-raw-bytes.ts';
import { decodeSolanaUnits } from '../../../src/engine/actions/decode-solana-units.ts';
import { ed25519PublicKey } from '../../../src/engine/crypto/ed25519.ts';
import { bytesTo0xHex, bytesToHex, concatBytes, utf8ToBytes } from '../../../src/engine/crypto/encoding.ts';
import type { PolicyAction } from '../../../src/engine/policy/action.ts';
import { compilePolicy } from '../../../src/engine/policy/compile.ts';
import type { ConditionInput } from '../../../src/engine/policy/condition-source.ts';
import { allowsAction, evaluatePolicy } from '../../../src/engine/policy/evaluate.ts';
import { aptosAccount } from '../../../src/engine/signing/aptos.ts';
import { type ChainType, chains, rpcMethodsOf } from '../../../src/engine/signing/chains.ts';
import { signOffline } from '../../../src/engine/signing/sign-with-key.ts';
import { encodeSolanaInstructions } from '../../../src/engine/signing/solana/encode-transfer.ts';
import {
  solanaInstructionNames,
  unreadTokenInstructions,
} from '../../../src/engine/signing/solana/instructions.ts';
import { decodeSuiIntentMessage, suiCommandNames } from '../../../src/engine/signing/sui.ts';
import { bytesField, int64Field } from '../../../src/engine/signing/tron/protobuf.ts';
import { decodeTronRawData, tronContractTypes } from '../../../src/engine/signing/tron/raw-data.ts';

// Chains add forms. What the reference library of each chain knows is compared with what is known here: a form that no
// rule reads is signed, one that a rule has to read is denied, and the denial names it.

const facts = { nowMs: 0, inConditionSet: () => undefined, aggregation: () => undefined };

type Given = Pick<ConditionInput, 'field_source' | 'field' | 'operator' | 'value'>;

function policyOf(chainType: string, method: string, ...rules: readonly ['ALLOW' | 'DENY', ...Given[]][]) {
  const named = rules.map(([action, ...conditions], index) => ({
    ...{ id: `${index}`, name: `${index}`, method, action, conditions },
  }));
  return compilePolicy({ id: 'policy', chain_type: chainType, rules: named });
}

/** Allowed without conditions, denied by one that has to read it, whose trace names the form. */
function requireFailsClosed(chainType: string, action: PolicyAction, condition: Given, name: string): void {
  const { method } = action;
  const decide = (...rules: readonly ['ALLOW' | 'DENY', ...Given[]][]) =>
    allowsAction(policyOf(chainType, method, ...rules), action, facts);
  expect(decide(['ALLOW'])).toBe(true);
  expect(decide(['ALLOW', condition])).toBe(false);
  expect(decide(['ALLOW'], ['DENY', condition])).toBe(false);
  const trace = JSON.stringify(
    evaluatePolicy(policyOf(chainType, method, ['ALLOW', condition]), action, facts),
    (_key, value) => (typeof value === 'bigint' ? String(value) : value),
  );
  expect(trace).toContain(name);
}

const enumNames = (given: object): string[] => Object.keys(given).filter((key) => Number.isNaN(Number(key)));

function rawAction(chainType: ChainType, bytes: Uint8Array): PolicyAction {
  const encoded = { bytes: bytesTo0xHex(bytes), encoding: 'hex' as const };
  return decodeRawSignAction(chainType, { ...encoded, hash_function: 'sha256' });
}

interface Protobuf {
  readonly Transaction: { readonly Contract: { readonly ContractType: Readonly<Record<string, number>> } };
}

describe('Tron', () => {
  /** Raw data with one contract. Source: TRON protocol, core/Tron.proto. */
  function rawData(name: string, type: number): Uint8Array {
    const url = utf8ToBytes(`type.googleapis.com/protocol.${name}`);
    const parameter = concatBytes(bytesField(1, url), bytesField(2, Uint8Array.of(10, 1, 0x41)));
    return concatBytes(
      bytesField(1, Uint8Array.of(1, 2)),
      bytesField(4, new Uint8Array(8)),
      bytesField(11, concatBytes(int64Field(1, BigInt(type)), bytesField(2, parameter))),
    );
  }

  const evil = `41${'ee'.repeat(20)}`;
  const toEvil: Given = {
    ...{ field_source: 'tron_transaction', field: 'TransferContract.to_address' },
    ...{ operator: 'eq', value: evil },
  };

  test('the list of contract types is that of tronweb', () => {
    const ours = Object.entries(tronContractTypes).map(([name, type]) => [name.toUpperCase(), Number(type)]);
    const { Transaction } = (globalThis as unknown as { TronWebProto: Protobuf }).TronWebProto;
    expect(Object.fromEntries(ours)).toEqual(Transaction.Contract.ContractType);
  });

  test('what rules cannot read is allowed by none that has to, and named', () => {
    for (const [name, type] of Object.entries(tronContractTypes)) {
      if (name === 'TransferContract' || name === 'TriggerSmartContract') continue;
      const action = rawAction('tron', rawData(name, Number(type)));
      requireFailsClosed('tron', action, toEvil, name);
    }
    const later = rawAction('tron', rawData('LaterContract', 77));
    requireFailsClosed('tron', later, toEvil, 'type 77');
  });

  test('a transfer under a permission of its owner is read', () => {
    const value = { owner_address: `41${'11'.repeat(20)}`, to_address: evil, amount: 5 };
    const parameter = { value, type_url: 'type.googleapis.com/protocol.TransferContract' };
    const block = { ref_block_bytes: '0102', ref_block_hash: '03'.repeat(8), expiration: 1_700_000_000_000 };
    const contract = [{ type: 'TransferContract', parameter, Permission_id: 2 }];
    const built = utils.transaction.txJsonToPb({ raw_data: { ...block, contract } } as never);
    const bytes: Uint8Array = built.getRawData().serializeBinary();
    expect(decodeTronRawData(bytes)?.contract).toEqual([
      {
        ...{ type: 'TransferContract', owner_address: `41${'11'.repeat(20)}`, to_address: evil },
        ...{ amount: 5, permission_id: 2 },
      },
    ]);
    const allows = (value: string) =>
      allowsAction(
        policyOf('tron', 'signTransactionBytes', ['ALLOW', { ...toEvil, value }]),
        rawAction('tron', bytes),
        facts,
      );
    expect(allows(evil)).toBe(true);
    expect(allows(`41${'ab'.repeat(20)}`)).toBe(false);
  });
});

describe('Sui', () => {
  const sender = `0x${'ab'.repeat(32)}`;
  const digest = bcs.ObjectDigest.parse(Uint8Array.of(32, ...new Uint8Array(32)));
  const input = { $kind: 'Input', Input: 0 } as const;
  const commands = {
    MoveCall: { package: sender, module: 'm', function: 'f', typeArguments: [], arguments: [] },
    TransferObjects: { objects: [{ GasCoin: true }], address: input },
    SplitCoins: { coin: { GasCoin: true }, amounts: [input] },
    MergeCoins: { destination: { GasCoin: true }, sources: [input] },
    Publish: { modules: [[1]], dependencies: [] },
    MakeMoveVec: { type: null, elements: [input] },
    Upgrade: { modules: [[1]], dependencies: [], package: sender, ticket: input },
  };
  type Parts = { readonly command?: object; readonly input?: object; readonly expiration?: object };

  function message({ command, input: given, expiration = { None: true } }: Parts): Uint8Array {
    const data = bcs.TransactionData.serialize({
      V1: {
        kind: {
          ProgrammableTransaction: {
            inputs: [given ?? { Pure: { bytes: new Uint8Array(32) } }],
            commands: [command ?? { TransferObjects: commands.TransferObjects }],
          },
        },
        sender,
        gasData: {
          payment: [{ objectId: sender, version: '1', digest }],
          owner: sender,
          price: 1,
          budget: 1,
        },
        expiration,
      },
    } as never);
    return concatBytes(Uint8Array.of(0, 0, 0), data.toBytes());
  }

  /** The names of an enum of the library, by the first byte of what it serializes. */
  function variants(type: { parse(bytes: Uint8Array): unknown }): number {
    for (let variant = 0; ; variant += 1) {
      try {
        type.parse(Uint8Array.of(variant, ...new Uint8Array(400)));
      } catch (error) {
        if (/Unknown value|variant/i.test(String(error))) return variant;
      }
    }
  }

  const received: Given = {
    ...{ field_source: 'sui_transfer_objects_command', field: 'recipient' },
    ...{ operator: 'eq', value: sender },
  };

  test('the list of commands is that of the library', () => {
    const ours = Object.entries(commands).map(
      ([name, value]) => [name, bcs.Command.serialize({ [name]: value } as never).toBytes()[0]] as const,
    );
    expect(suiCommandNames).toEqual(ours.map(([name]) => name));
    expect(ours.map(([, variant]) => variant)).toEqual(suiCommandNames.map((_, index) => index));
    expect(variants(bcs.Command)).toBe(suiCommandNames.length);
    expect([bcs.CallArg, bcs.TransactionExpiration, bcs.Argument, bcs.ObjectArg].map(variants)).toEqual([
      3, 4, 4, 3,
    ]);
  });

  test.each(['MoveCall', 'Publish', 'MakeMoveVec', 'Upgrade'] as const)('%s is read by no rule', (name) => {
    const bytes = message({ command: { [name]: commands[name] } });
    requireFailsClosed('sui', rawAction('sui', bytes), received, name);
  });

  const bounds = {
    minEpoch: '1',
    maxEpoch: '2',
    minTimestamp: null,
    maxTimestamp: null,
    chain: digest,
    nonce: 7,
  };
  const withdrawal = (typeArg: string, withdrawFrom: object) => ({
    FundsWithdrawal: {
      ...{ reservation: { MaxAmountU64: '5' }, typeArg: { Balance: typeArg }, withdrawFrom },
    },
  });
  const read: readonly [string, Parts][] = [
    ['no expiration', {}],
    ['an expiration by epoch', { expiration: { Epoch: 5 } }],
    ['ValidDuring', { expiration: { ValidDuring: bounds } }],
    ['Validity', { expiration: { Validity: { ...bounds, allowedProposers: null } } }],
    [
      'Validity with proposers',
      { expiration: { Validity: { ...bounds, allowedProposers: { epoch: '3', proposers: [1, 4] } } } },
    ],
    ['funds of the sender', { input: withdrawal('0x2::sui::SUI', { Sender: true }) }],
    ['funds of the sponsor', { input: withdrawal('vector<0x2::a::B<u8, address>>', { Sponsor: true }) }],
    [
      'funds of an allowance',
      { input: withdrawal('u256', { SenderAllowance: { funder: sender, allowance: sender } }) },
    ],
  ];
  test.each(read)('a transaction with %s is read', (_name, parts) => {
    expect(decodeSuiIntentMessage(message(parts))).toMatchObject({ sender, gasBudget: 1n });
  });
});

describe('Solana', () => {
  const screaming = (name: string) => name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, '_').toUpperCase();
  const discriminator = (library: object, name: string): number =>
    (library as Record<string, number>)[`${screaming(name)}_DISCRIMINATOR`]!;
  const [payer, account] = [
    '4wBqpZM9xaSheZzJSMawUKKwhdpChKbZ5eu5ky4Vigw',
    '8qbHbw2BbbTHBW1sbeqakYXVKRQM8Ne7pLK7m6CVfeR',
  ];

  test('the instructions of the system program are those of its client', () => {
    const names = enumNames(system.SystemInstruction).map((name) => [
      discriminator(system, name),
      name.replace('Sol', ''),
    ]);
    expect(names).toEqual(solanaInstructionNames.system.map((name, index) => [index, name]));
  });

  test('those of the token program too', () => {
    const ours = [
      ...solanaInstructionNames.token.map((name, index): [number, string] => [index, name]),
      ...Object.entries(unreadTokenInstructions).map(([key, name]): [number, string] => [Number(key), name]),
    ];
    expect(enumNames(token.TokenInstruction).map((name) => [discriminator(token, name), name])).toEqual(ours);
  });

  const big: Given = {
    ...{ field_source: 'solana_token_program_instruction', field: 'TransferChecked.amount' },
    ...{ operator: 'lte', value: '1' },
  };
  test.each([...Object.entries(unreadTokenInstructions), ['200', 'unknown instruction: 200']])(
    'instruction %s of the token program is read by no rule',
    (tag, name) => {
      const data = Uint8Array.of(Number(tag), 1, 2, 3);
      const accounts = [{ address: account!, isWritable: true }];
      const wire = encodeSolanaInstructions(payer!, [
        { program: token.TOKEN_PROGRAM_ADDRESS, accounts, data },
      ]);
      const units = decodeSolanaUnits(Buffer.from(wire).toString('base64'));
      requireFailsClosed('solana', { method: 'signTransaction', units }, big, name);
    },
  );
});

describe('Aptos', () => {
  const secret = new Uint8Array(32).fill(7);
  const [u64, text] = [
    '0100000000000000',
    (value: string) => `0${value.length}${Buffer.from(value).toString('hex')}`,
  ];
  const head = bytesToHex(aptosAccount(ed25519PublicKey(secret))) + u64;
  const tail = `${u64.repeat(3)}01`;
  const entryFunction = (types: string) =>
    `${'00'.repeat(31)}01${text('coin')}${text('transfer')}01${types}0101ff`;
  const signs = async (payload: string): Promise<boolean> => {
    const transaction = `0x${head}${payload}${tail}`;
    const signed = await signOffline('aptos_signTransaction', secret, { transaction }).catch(() => undefined);
    return String(signed?.signed_transaction ?? '').startsWith(transaction);
  };
  const hex = (variant: number) =>
    variant < 128 ? variant.toString(16).padStart(2, '0') : `${variant.toString(16)}01`;

  test('every type tag of the library, and those that it does not have', async () => {
    const { Vector, Struct, ...others } = Object.fromEntries(
      enumNames(TypeTagVariants).map((name) => [name, (TypeTagVariants as never)[name] as number]),
    );
    const structure = `${hex(Struct!)}${'11'.repeat(32)}${text('a')}${text('B')}00`;
    const tags = [...Object.values(others).map(hex), `${hex(Vector!)}01`, structure];
    // aptos-core: 11 is a function type (parameters, results, abilities), 12 to 17 are signed integers.
    for (const tag of [...tags, '0b010201010100', '11']) {
      expect([tag, await signs(`02${entryFunction(tag)}`)]).toEqual([tag, true]);
    }
  });

  test('every payload of an Aptos transaction is decoded or refused', async () => {
    const script = (argument: string) => `02a1ff0001${argument}`;
    const sizes: Readonly<Record<string, string>> = {
      ...{ U8: '01', U64: u64, U128: u64 + u64, Address: '11'.repeat(32), U8Vector: '0101', Bool: '01' },
      ...{ U16: '0101', U32: '01010101', U256: '11'.repeat(32), Serialized: '0101', I8: 'ff', I16: 'ffff' },
      ...{ I32: 'ff'.repeat(4), I64: 'ff'.repeat(8), I128: 'ff'.repeat(16), I256: 'ff'.repeat(32) },
    };
    const names = enumNames(ScriptTransactionArgumentVariants);
    expect(names).toEqual(Object.keys(sizes));
    const scripts = names.map((name, index) => `00${script(hex(index) + sizes[name])}`);
    const orderless = (executable: string) => `0400${executable}000001${u64}`;
    const payloads = {
      Script: scripts,
      EntryFunction: [`02${entryFunction('01')}`],
      Multisig: [`03${'11'.repeat(32)}00`, `03${'11'.repeat(32)}0100${entryFunction('01')}`],
      Payload: [
        orderless(`00${script(`00${sizes.U8}`)}`),
        orderless(`01${entryFunction('01')}`),
        orderless('02'),
      ],
    };
    expect(enumNames(TransactionPayloadVariants)).toEqual(Object.keys(payloads));
    expect(
      [TransactionExecutableVariants, TransactionExtraConfigVariants, TransactionInnerPayloadVariants].map(
        enumNames,
      ),
    ).toEqual([['Script', 'EntryFunction', 'Empty'], ['V1'], ['V1']]);
    // Forms of later versions: an encrypted payload, version 2 of others, an executable and a script argument.
    const later = [
      '050011',
      '0401',
      '040003',
      `03${'11'.repeat(32)}0101aa`,
      '04000201bb',
      `00${script('1077')}`,
    ];
    for (const payload of [...Object.values(payloads).flat(), ...later]) {
      expect([payload, await signs(payload)]).toEqual([payload, true]);
    }
  });

  test('a module bundle, which the chain has removed, and what is cut are refused', async () => {
    expect(await signs('0100')).toBe(false);
    expect(await signs('02')).toBe(false);
    const cut = `0x${head}05${tail.slice(2)}`;
    await expect(signOffline('aptos_signTransaction', secret, { transaction: cut })).rejects.toThrow(
      'variant 5',
    );
  });
});

test('the other chains have no decoder that could age', () => {
  // The contract offers them `raw_sign` of a hash or of bytes, of which rules read the text and the length only, and
  // methods of Spark, which name their content. The decoder of NEAR and that of XRPL have tables of their own.
  const decoded = ['ethereum', 'solana', 'sui', 'tron', 'near', 'aptos', 'movement', 'xrpl'];
  const others = (Object.keys(chains) as ChainType[]).filter((chainType) => !decoded.includes(chainType));
  const methods = new Set(others.filter((each) => each !== 'spark').flatMap((each) => rpcMethodsOf(each)));
  expect(others).toEqual([
    'cosmos',
    'stellar',
    'bitcoin-segwit',
    'bitcoin-taproot',
    'pearl',
    'ton',
    'starknet',
    'spark',
  ]);
  expect([...methods].sort()).toEqual(['exportPrivateKey', 'exportSeedPhrase']);
  expect(rpcMethodsOf('movement')).toEqual(rpcMethodsOf('aptos'));
});
