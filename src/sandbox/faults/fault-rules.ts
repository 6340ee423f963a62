import { WalletEntity } from '../../domain/wallets/wallets/wallet.entity.ts';
import { type ErrorCode, invalidField, notFound } from '../../errors.ts';
import type { Entropy } from '../../ports/runtime.ts';
import type { ControlContext } from '../control-plane.ts';
import type { AddSandboxFaultRequest, SandboxFault, SandboxFaultEffect } from '../generated/schemas.ts';
import { requireSimulated } from '../named-chain.ts';

/** CHOICE: the most rules. */
export const MAX_FAULTS = 100;

/** A rule. `hits` counts how often it has applied. */
export type FaultRule = SandboxFault;

/** The criteria of a rule, with the server's names. */
export interface Selection {
  /** CAIP-2. */
  readonly chain?: string | undefined;
  readonly walletId?: string | undefined;
  /** The wallet's names for clients: its id, and its external id if it has one. */
  readonly walletNames?: readonly string[] | undefined;
  /** In the chain's notation; lower case for EVM chains. */
  readonly address?: string | undefined;
  readonly eventType?: string | undefined;
}

/** A rule that applies. */
export interface FaultHit {
  readonly rule: FaultRule;
  /** Drawn, if the rule has a range. */
  readonly delayMs: number;
}

/**
 * The fault rules of one sandbox, in memory.
 *
 * CHOICE: a reset removes them, like everything else that was created since the start.
 */
export interface FaultRules {
  /** Undefined when there are too many. */
  add(rule: Omit<FaultRule, 'id' | 'hits'>, selection: Selection): FaultRule | undefined;
  all(): readonly FaultRule[];
  find(id: string): FaultRule | undefined;
  remove(id: string): FaultRule | undefined;
  /** Removes all rules; returns how many there were. */
  clear(): number;
  /** As after the start: without rules, and with the first id. */
  restart(): void;
  /**
   * The first rule with one of these effects that selects the occasion and applies to it.
   *
   * CHOICE: at most one rule applies to an occasion; those after it are not tried. A rule with the probability 1 draws
   * nothing.
   */
  draw(
    effects: ReadonlySet<SandboxFaultEffect>,
    selects: (rule: FaultRule, selection: Selection) => boolean,
  ): FaultHit | undefined;
}

/** @param entropy draws which occasions a rule applies to, and delays. */
export function createFaultRules(entropy: Entropy): FaultRules {
  let rules: FaultRule[] = [];
  const selections = new WeakMap<FaultRule, Selection>();
  let lastNumber = 0;
  /** From 0 to less than 1. */
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
 * The criteria of a rule. Rules for requests compare values that clients send, so their wallet need not exist yet.
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

/** A wallet of any app by its id; by an external id only of the app that the sandbox was started with. */
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

/** An error as the example of the document shows it. */
interface DocumentedError {
  readonly message: string | undefined;
  readonly data: Readonly<Record<string, unknown>> | undefined;
}

/** The errors of each operation. */
export type DocumentedErrors = ReadonlyMap<string, ReadonlyMap<ErrorCode, DocumentedError>>;

/** As much of an OpenAPI document as its errors need. */
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

/** The document has one example for each error code of a response, under the name of the code. */
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
      // `error` of an OAuth error (RFC 6749) is not a message.
      { message: 'error_description' in value ? undefined : value.error, data: value.data },
    ]),
  );
}
