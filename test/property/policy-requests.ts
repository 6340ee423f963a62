import fc from 'fast-check';
import type { ActionUnit, PolicyFacts, SolanaAccount } from '../../src/engine/policy/action.ts';
import { isItem } from '../../src/engine/policy/operators.ts';
import type { World } from '../unit/policy/oracle.ts';
import { calldatas, messageTypeMaps, wellFormedCalldatas } from './policy-calldata.ts';
import {
  currencies,
  decimals,
  evmAddresses,
  type Family,
  numbers,
  setIds,
  setItems,
  solanaAddresses,
  suiAddresses,
  texts,
  totalIds,
  tronAddresses,
  xrplAddresses,
} from './policy-conditions.ts';

const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined });
const integer = fc.constantFrom(...numbers.map(BigInt));
const evm = fc.constantFrom(...evmAddresses.flatMap((text) => [text, text.toLowerCase()]));
const text = fc.constantFrom(...texts);
/** An account of any chain, or text that is not an account. */
const anyAccount = fc.constantFrom(
  ...evmAddresses.flatMap((one) => [one, one.toLowerCase()]),
  ...tronAddresses.flat(),
  'a',
);
/** JSON that no decoder produces but evaluation must tolerate. */
const nonsense = fc.constantFrom<unknown>(
  null,
  1.5,
  -1,
  '',
  'x',
  '0x',
  [],
  ['1', '2'],
  {},
  { toString: 1, valueOf: 1 },
  { length: 2 },
  true,
  '1e3',
  '-5',
);
const maybeUnreadable = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | 'unreadable'> =>
  fc.oneof({ arbitrary, weight: 3 }, { arbitrary: fc.constant('unreadable' as const), weight: 1 });
const orNonsense = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ arbitrary, weight: 8 }, { arbitrary: nonsense, weight: 1 });

/** A selector and words that look like amounts, offsets and lengths, sometimes with a missing byte. */
const strangeCalldata = fc
  .record({
    selector: fc.constantFrom(...calldatas.map((data) => data.subarray(0, 4))),
    words: fc.array(fc.constantFrom('00', '01', '02', '20', '40', '60', '80', 'a0', 'ff'.repeat(32)), {
      maxLength: 10,
    }),
    cutOff: fc.constantFrom(0, 0, 0, 1),
  })
  .map(({ selector, words, cutOff }) => {
    const hex = words.map((word) => word.padStart(64, '0')).join('');
    return Uint8Array.from(
      [...selector, ...Buffer.from(hex, 'hex')].slice(0, 4 + words.length * 32 - cutOff),
    );
  });
const calldata = fc.oneof(
  { arbitrary: fc.constantFrom(...wellFormedCalldatas), weight: 4 },
  { arbitrary: fc.constantFrom(...calldatas), weight: 3 },
  { arbitrary: strangeCalldata, weight: 1 },
);

const call = fc.record({
  label: fc.constant('call'),
  ethereumCall: fc.record({
    to: maybe(evm),
    value: integer,
    chainId: maybe(integer),
    data: calldata,
  }),
  tempo: maybe(
    fc.record({
      feeToken: maybe(evm),
      hasFeePayerSignature: fc.boolean(),
      nonceKey: maybe(integer),
      validBefore: maybe(integer),
      validAfter: maybe(integer),
    }),
  ),
});

const leg = orNonsense(
  fc.record({ to: orNonsense(evm), amount: orNonsense(fc.constantFrom(...numbers, 1, 100)) }),
);
const typedData = fc.record({
  label: fc.constant('typed data'),
  typedData: fc.record({
    domain: fc.record({
      chainId: orNonsense(fc.constantFrom<unknown>(1, 100, '1', '0x64', 1n, undefined)),
      verifyingContract: orNonsense(maybe(evm)),
    }),
    types: fc.constantFrom(...messageTypeMaps.map(({ types }) => types)),
    primaryType: fc.constantFrom('Payment', 'Payment', 'Payment', 'Leg'),
    message: fc.record(
      {
        to: orNonsense(evm),
        amount: orNonsense(fc.constantFrom<unknown>(...numbers, 100, 101n)),
        note: orNonsense(text),
        final: orNonsense(fc.boolean()),
        legs: orNonsense(fc.array(leg, { maxLength: 2 })),
      },
      { requiredKeys: [] },
    ),
  }),
});

const message = fc.record({
  label: fc.constant('message'),
  messageBytes: fc.oneof(
    text.map((content) => new TextEncoder().encode(content)),
    fc.constantFrom(Uint8Array.of(0xff), Uint8Array.of(0x61, 0xc0), Uint8Array.of(0xef, 0xbb, 0xbf, 0x61)),
  ),
});

const account: fc.Arbitrary<SolanaAccount> = fc.oneof(
  { arbitrary: fc.constantFrom(...solanaAddresses), weight: 6 },
  { arbitrary: fc.constant({ behindLookupTable: true } as const), weight: 1 },
);
// Most requests that conditions refer to are transfers.
const solanaNames = [
  ...['Transfer', 'Transfer', 'Transfer', 'TransferChecked', 'TransferChecked', 'Burn', 'MintTo'],
  ...['CloseAccount', 'InitializeAccount3', 'Approve'],
];
const solanaAccountNames = ['from', 'to', 'source', 'destination', 'authority', 'mint', 'account', 'owner'];
const solana = fc.record({
  label: fc.constant('instruction'),
  solanaInstruction: fc.record({
    programId: account,
    program: fc.constantFrom('system', 'token', 'other'),
    name: fc.constantFrom(...solanaNames, undefined),
    fields: fc.record(
      {
        ...Object.fromEntries(solanaAccountNames.map((name) => [name, account])),
        amount: integer,
        lamports: integer,
      },
      { requiredKeys: [] },
    ) as fc.Arbitrary<Record<string, bigint | SolanaAccount>>,
  }),
});

const tron = fc.record({
  label: fc.constant('contract'),
  tronContract: fc.record({
    type: fc.constantFrom('TransferContract', 'TriggerSmartContract'),
    fields: fc.record(
      {
        to_address: fc.constantFrom(...tronAddresses.map(([hex]) => hex), '', '41AB'),
        contract_address: fc.constantFrom(...tronAddresses.map(([hex]) => hex)),
        amount: integer,
        call_value: integer,
        token_id: integer,
        call_token_value: integer,
      },
      { requiredKeys: [] },
    ) as fc.Arbitrary<Record<string, bigint | string>>,
    data: maybe(calldata),
  }),
});

const issued = fc.record(
  {
    value: orNonsense(fc.constantFrom(...decimals)),
    currency: orNonsense(fc.constantFrom(...currencies)),
    issuer: fc.constantFrom(...xrplAddresses),
  },
  { requiredKeys: [] },
);
const amount = orNonsense(fc.oneof(fc.constantFrom(...numbers), issued));
const xrpl = fc.record({
  label: fc.constant('transaction'),
  xrplTransaction: fc.record(
    {
      TransactionType: orNonsense(fc.constantFrom('Payment', 'OfferCreate', 'TrustSet', 'AccountSet')),
      Destination: orNonsense(fc.constantFrom(...xrplAddresses)),
      DestinationTag: orNonsense(fc.constantFrom(0, 1, 99, 100)),
      Amount: amount,
      SendMax: amount,
      DeliverMin: amount,
      TakerPays: amount,
      TakerGets: amount,
      Expiration: orNonsense(fc.constantFrom(0, 99, 2 ** 32 - 1)),
      LimitAmount: orNonsense(issued),
      QualityIn: orNonsense(fc.constantFrom(0, 100)),
      QualityOut: orNonsense(fc.constantFrom(1, 2)),
    },
    { requiredKeys: [] },
  ),
});

const sui = fc.record({
  label: fc.constant('transaction'),
  suiCommands: fc.array(
    fc.record({
      name: fc.constantFrom('TransferObjects', 'TransferObjects', 'SplitCoins', 'MergeCoins', undefined),
      recipient: maybe(fc.constantFrom(...suiAddresses)),
      amount: maybe(integer),
    }),
    { maxLength: 3 },
  ),
});

const walletAction = fc.record({
  label: fc.constant('transfer'),
  requestBody: fc.record(
    {
      source: orNonsense(
        fc.record(
          {
            asset: orNonsense(text),
            asset_address: orNonsense(anyAccount),
            chain: text,
            amount: orNonsense(fc.constantFrom(...decimals)),
          },
          { requiredKeys: [] },
        ),
      ),
      destination: orNonsense(
        fc.record(
          { address: anyAccount, asset: text, chain: orNonsense(text) },
          { requiredKeys: ['address'] },
        ),
      ),
      vault_id: orNonsense(text),
      amount: orNonsense(fc.constantFrom(...decimals)),
      raw_amount: orNonsense(fc.constantFrom(...decimals)),
    },
    { requiredKeys: [] },
  ),
});

const authorization = evm.map((contract) => ({ label: 'authorization', authorization7702: { contract } }));
const wellDecoded = { call, typedData, message, solana, tron, xrpl, sui, walletAction, authorization };

/** A unit of the family's kind; sometimes undecodable, or without any of the fields in rules. */
export function unitOf(family: Family): fc.Arbitrary<ActionUnit> {
  return fc.oneof(
    { arbitrary: wellDecoded[family.units] as fc.Arbitrary<ActionUnit>, weight: 18 },
    { arbitrary: fc.constant({ label: 'bytes', undecodable: 'of another kind' }), weight: 1 },
    { arbitrary: fc.constant({ label: 'nothing' }), weight: 1 },
  );
}

/** Sets and totals, one of each always deleted; times close to the numbers of the pool. */
export const worlds: fc.Arbitrary<World> = fc.record({
  nowMs: fc.constantFrom(0, 999, 1000, 99_999, 100_000, 101_999, 1_763_719_200_000),
  sets: fc.record({ [setIds[0]!]: setItems, [setIds[1]!]: setItems }),
  totals: fc.record({ [totalIds[0]!]: integer, [totalIds[1]!]: maybeUnreadable(integer) }),
});

/** The look-ups of the engine, by spelling, like a table of values. */
export function factsOf({ nowMs, sets, totals }: World): PolicyFacts {
  return {
    nowMs,
    aggregation: (id) => totals[id],
    inConditionSet: (id, candidate) =>
      sets[id] === undefined ? undefined : sets[id].some((item) => isItem(item, candidate)),
  };
}
