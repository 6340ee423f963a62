import { WalletEntity } from '../../domain/wallets/wallets/wallet.entity.ts';
import { type ErrorCode, invalidField, notFound } from '../../errors.ts';
import type { Entropy } from '../../ports/runtime.ts';
import type { ControlContext } from '../control-plane.ts';
import { requireSimulated } from '../controllable-chains.ts';
import type { AddSandboxFaultRequest, SandboxFault, SandboxFaultEffect } from '../generated/schemas.ts';

/** CHOICE: the maximum number of rules. */
export const MAX_FAULTS = 100;

/** A fault rule. `hits` counts how many times the rule was applied. */
export type FaultRule = SandboxFault;

/** The criteria of a rule, under the names that the server uses. */
export interface Selection {
  /** The CAIP-2 id of the chain. */
  readonly chain?: string | undefined;
  readonly walletId?: string | undefined;
  /** The names that clients use for the wallet: its id and, if it has one, its external id. */
  readonly walletNames?: readonly string[] | undefined;
  /** The wallet's address in the notation of the chain type; lower case on EVM chains. */
  readonly address?: string | undefined;
  readonly eventType?: string | undefined;
}

/** A rule that was applied, with the values that were drawn for it. */
export interface FaultHit {
  readonly rule: FaultRule;
  /** The delay. If the rule has a range, it was drawn at random. */
  readonly delayMs: number;
}

/**
 * The fault rules of one sandbox, in memory.
 *
 * CHOICE: a reset removes them, like everything else that was created since the start.
 */
export interface FaultRules {
  /** Adds a rule. Returns undefined if there are too many rules. */
  add(rule: Omit<FaultRule, 'id' | 'hits'>, selection: Selection): FaultRule | undefined;
  all(): readonly FaultRule[];
  find(id: string): FaultRule | undefined;
  remove(id: string): FaultRule | undefined;
  /** Removes all rules and returns how many there were. */
  clear(): number;
  /** Resets to the state after the start: no rules, and ids start again from the first. */
  restart(): void;
  /**
   * Returns the first rule that has one of these effects, matches, and is drawn by its probability. Undefined if there
   * is none.
   *
   * CHOICE: at most one rule is applied, and the rules after it are not tried. A rule with the probability 1 draws no
   * random number.
   */
  draw(
    effects: ReadonlySet<SandboxFaultEffect>,
    selects: (rule: FaultRule, selection: Selection) => boolean,
  ): FaultHit | undefined;
}

/**
 * Creates an empty set of rules.
 *
 * @param entropy decides by chance whether a rule is applied, and draws the delays.
 */
export function createFaultRules(entropy: Entropy): FaultRules {
  let rules: FaultRule[] = [];
  const selections = new WeakMap<FaultRule, Selection>();
  let lastNumber = 0;
  /** Draws a random number from 0 to below 1. */
  const share = (): number => Buffer.from(entropy.bytes(4)).readUInt32BE() / 2 ** 32;
  const applies = (rule: FaultRule): boolean => {
    if (rule.count !== null && rule.hits >= rule.count) return false;
    return rule.probability === 1 || share() < rule.probability;
  };
  const delayOf = ({ delay_ms: least, max_delay_ms: most }: FaultRule): number => {
    if (least === null) return 0;
    return most === null ? least : least + Math.floor(share() * (most - least + 1));
  };
  return {
    add(rule, selection) {
      if (rules.length >= MAX_FAULTS) return undefined;
      lastNumber += 1;
      const added = { ...rule, id: `fault_${lastNumber}`, hits: 0 };
      rules.push(added);
      selections.set(added, selection);
      return added;
    },
    all: () => rules,
    find: (id) => rules.find((rule) => rule.id === id),
    remove(id) {
      const found = rules.find((rule) => rule.id === id);
      rules = rules.filter((rule) => rule !== found);
      return found;
    },
    clear() {
      const count = rules.length;
      rules = [];
      return count;
    },
    restart() {
      rules = [];
      lastNumber = 0;
    },
    draw(effects, selects) {
      if (rules.length === 0) return undefined;
      const rule = rules.find(
        (each) => effects.has(each.effect) && selects(each, selections.get(each)!) && applies(each),
      );
      if (rule === undefined) return undefined;
      rule.hits += 1;
      return { rule, delayMs: delayOf(rule) };
    },
  };
}

type SelectionContext = Pick<ControlContext, 'chains' | 'events' | 'read' | 'appId'>;

/**
 * Reads the criteria of a rule. Rules for requests are compared with the values that clients send, so their wallet
 * need not exist yet.
 *
 * @throws ApiError not_found for an unknown wallet; invalid_data for an unknown chain or event type.
 */
export async function selectionOf(
  { effect, chain, event_type: type, wallet_id: walletId }: AddSandboxFaultRequest,
  context: SelectionContext,
): Promise<Selection> {
  const isRequest = !/^(transaction|webhook)_/.test(effect);
  const found = walletId === undefined ? null : await findAnyWallet(walletId, context);
  if (isRequest) return walletId === undefined ? {} : { walletNames: namesOf(walletId, found) };
  if (walletId !== undefined && found === null) throw notFound('Wallet');
  const wallet = found ?? undefined;
  return {
    chain: chain === undefined ? undefined : requireSimulated(context.chains, chain),
    walletId: wallet?.id,
    address: wallet?.address.startsWith('0x') === true ? wallet.address.toLowerCase() : wallet?.address,
    eventType: type === undefined ? undefined : await knownType(type, context),
  };
}

const EXTERNAL_PREFIX = 'ext_wal_';

/**
 * Finds a wallet of any app by its id. By an external id, finds only a wallet of the app with which the sandbox was
 * started.
 */
async function findAnyWallet(walletId: string, { read, appId }: SelectionContext) {
  const where = walletId.startsWith(EXTERNAL_PREFIX)
    ? { appId, externalId: walletId.slice(EXTERNAL_PREFIX.length) }
    : { id: walletId };
  return read((em) => em.findOne(WalletEntity, where));
}

function namesOf(
  given: string,
  wallet: { readonly id: string; readonly externalId?: string | null | undefined } | null,
): readonly string[] {
  const { id = given, externalId } = wallet ?? {};
  const external = externalId == null ? [] : [`${EXTERNAL_PREFIX}${externalId}`];
  return [...new Set([given, id, ...external])];
}

async function knownType(named: string, { events }: SelectionContext): Promise<string> {
  const type = events.readType(named);
  if ((await events.types()).includes(type)) return type;
  throw invalidField('/event_type', await events.unknownType(named));
}

/** An error that an example of the API document shows. */
interface DocumentedError {
  readonly message: string | undefined;
  readonly data: Readonly<Record<string, unknown>> | undefined;
}

export type DocumentedErrors = ReadonlyMap<string, ReadonlyMap<ErrorCode, DocumentedError>>;

/** The fields of an OpenAPI document from which errors are read. */
interface ErrorsDocument {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          { readonly operationId: string; readonly responses: Readonly<Record<string, Response>> }
        >
      >
    >
  >;
}

interface Response {
  readonly content?: Readonly<Record<string, { readonly examples?: Readonly<Record<string, Example>> }>>;
}

interface Example {
  readonly value: { readonly error?: string; readonly data?: Readonly<Record<string, unknown>> };
}

/**
 * Returns the documented errors. The API document has one example for each error code of a response, and the code is
 * the example's name.
 */
export function documentedErrorsOf({ paths }: ErrorsDocument): DocumentedErrors {
  return new Map(
    Object.values(paths)
      .flatMap((methods) => Object.values(methods))
      .map(({ operationId, responses }) => [operationId, errorsOf(responses)]),
  );
}

function errorsOf(responses: Readonly<Record<string, Response>>): Map<ErrorCode, DocumentedError> {
  const refusals = Object.entries(responses).filter(([status]) => Number(status) >= 400);
  const examples = refusals.flatMap(([, { content }]) =>
    Object.entries(content?.['application/json']?.examples ?? {}),
  );
  return new Map(
    examples.map(([code, { value }]) => [
      code as ErrorCode,
      // The `error` member of an OAuth error (RFC 6749) is a code, not a message.
      { message: 'error_description' in value ? undefined : value.error, data: value.data },
    ]),
  );
}
