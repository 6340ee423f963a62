import { solanaInstructionNames } from '../../signing/solana/instructions.ts';
import type { ActionUnit, SolanaAccount, SolanaInstruction } from '../action.ts';
import {
  type ConditionInput,
  type ConditionSource,
  expectCaseOf,
  type ResolvedField,
  type RuleAction,
} from '../condition-source.ts';
import { absent, type Observation, present, presentAll, unreadable } from '../values.ts';

const METHODS = ['signTransaction', 'signAndSendTransaction'];

const SYSTEM_FIELDS: readonly string[] = ['Transfer.from', 'Transfer.to', 'Transfer.lamports'];
const TOKEN_FIELDS: readonly string[] = [
  ...['source', 'destination', 'authority', 'amount'].map((name) => `Transfer.${name}`),
  ...['source', 'destination', 'authority', 'amount', 'mint'].map((name) => `TransferChecked.${name}`),
  ...['account', 'mint', 'authority', 'amount'].map((name) => `Burn.${name}`),
  ...['mint', 'account', 'authority', 'amount'].map((name) => `MintTo.${name}`),
  ...['account', 'destination', 'authority'].map((name) => `CloseAccount.${name}`),
  ...['account', 'mint', 'owner'].map((name) => `InitializeAccount3.${name}`),
];

function readInstruction(
  unit: ActionUnit,
  read: (instruction: SolanaInstruction) => Observation,
): Observation {
  if (unit.undecodable !== undefined) return unreadable(unit.undecodable);
  return unit.solanaInstruction === undefined
    ? absent('not a Solana instruction')
    : read(unit.solanaInstruction);
}

function readAccount(account: SolanaAccount): Observation {
  return typeof account === 'string'
    ? present(account)
    : unreadable('the account is behind an address lookup table');
}

export const solanaProgramInstruction: ConditionSource = {
  methods: METHODS,
  resolve({ field }) {
    if (field !== 'programId') return undefined;
    return {
      kind: 'solana_address',
      read: (unit) => readInstruction(unit, ({ programId }) => readAccount(programId)),
    };
  },
};

/** Instructions that move the same tokens in the same way. A DENY on one of them is a DENY on both. */
const SIBLINGS: Readonly<Record<string, string>> = {
  Transfer: 'TransferChecked',
  TransferChecked: 'Transfer',
};

interface Program {
  readonly program: 'system' | 'token';
  readonly fields: readonly string[];
  /** Maps the name of an instruction to the name of its sibling. */
  readonly siblings: Readonly<Record<string, string>>;
}

const SYSTEM: Program = { program: 'system', fields: SYSTEM_FIELDS, siblings: {} };
const TOKEN: Program = { program: 'token', fields: TOKEN_FIELDS, siblings: SIBLINGS };

/**
 * Returns the names under which a condition sees an instruction. A DENY rule also sees the sibling's name, unless the
 * condition is `neq`.
 */
function namesOf(
  { siblings }: Program,
  name: string,
  operator: ConditionInput['operator'],
  action: RuleAction,
) {
  const sibling = siblings[name];
  return action === 'ALLOW' || operator === 'neq' || sibling === undefined ? [name] : [name, sibling];
}

function unknownInstruction(what: string | undefined): Observation {
  return unreadable(what === undefined ? 'unknown instruction' : `unknown instruction: ${what}`);
}

function programField(
  owner: Program,
  { field, operator }: ConditionInput,
  action: RuleAction,
): ResolvedField | undefined {
  const { program, fields } = owner;
  const readOwn = (unit: ActionUnit, read: (instruction: SolanaInstruction) => Observation): Observation =>
    readInstruction(unit, (instruction) => {
      if (typeof instruction.programId !== 'string') return readAccount(instruction.programId);
      if (instruction.program !== program) return absent(`not an instruction of the ${program} program`);
      return read(instruction);
    });
  if (field === 'instructionName') {
    return {
      kind: 'text',
      expectedInstead: expectCaseOf(solanaInstructionNames[program]),
      read: (unit) =>
        readOwn(unit, ({ name, unread }) =>
          name === undefined
            ? unknownInstruction(unread)
            : presentAll(namesOf(owner, name, operator, action)),
        ),
    };
  }
  if (!fields.includes(field)) return undefined;
  const [instructionName = '', member = ''] = field.split('.');
  const sibling = action === 'DENY' ? owner.siblings[instructionName] : undefined;
  return {
    kind: member === 'lamports' || member === 'amount' ? 'number' : 'solana_address',
    read: (unit) =>
      readOwn(unit, ({ name, unread, fields: values }) => {
        if (name === undefined) return unknownInstruction(unread);
        if (name !== instructionName && name !== sibling) return absent(`the instruction is ${name}`);
        const value = values[member];
        if (value === undefined) return unreadable(`the instruction has no ${member}`);
        return typeof value === 'bigint' ? present(value.toString()) : readAccount(value);
      }),
  };
}

export const solanaSystemProgramInstruction: ConditionSource = {
  methods: METHODS,
  resolve: (condition, action) => programField(SYSTEM, condition, action),
};

/** Instructions of the token program and of Token-2022. */
export const solanaTokenProgramInstruction: ConditionSource = {
  methods: METHODS,
  resolve: (condition, action) => programField(TOKEN, condition, action),
};
