import { isDeepStrictEqual } from 'node:util';
import { keyNames } from '../../mocks/authorization-keys.ts';
import { type ConfigFile, type NamedSection, namedSections, type World } from '../config/config-file.ts';
import { ApiError } from '../errors.ts';
import type { OperationId } from '../generated/operations.ts';
import type { ControlContext } from '../sandbox/control-plane.ts';
import { type ReadBalance, raiseBalance } from '../sandbox/faucet.ts';
import { requestValidators } from '../sandbox/generated/request-validators.js';
import type { AddSandboxFaultRequest, FundSandboxAddressRequest } from '../sandbox/generated/schemas.ts';
import { addFault } from '../sandbox/handlers/faults.ts';
import { bodyFault } from '../server/validation-issues.ts';

/** The effect of applying a configuration file. Each text begins with a path in the file. */
export interface WorldChange {
  /** What was created or changed. */
  readonly applied: readonly string[];
  /** The changes that only a reset applies, because the API does not change these resources. */
  readonly needsReset: readonly string[];
  readonly faults: readonly string[];
}

/** A resource in the form in which the API returns it. */
type Resource = Readonly<Record<string, unknown>> & { readonly id: string };
type Body = Readonly<Record<string, unknown>>;

/** Creates and changes the resources that a configuration file declares. */
export interface DeclaredWorld {
  /**
   * Creates what the file declares and the sandbox lacks, and replaces the fault rules that the previous file added.
   * Requests go through the API, so they are checked like those of a client.
   *
   * CHOICE: a resource is recognized by its name in the file: wallets by their external id, users by a custom
   * account, policies and key quorums by their name, webhook endpoints by their description. Applying a file again
   * changes nothing, even in a data folder or after a snapshot was loaded.
   */
  apply(file: Pick<ConfigFile, 'name' | 'world'>): Promise<WorldChange>;
}

/** The member of a body that is set to the resource's name, unless the file sets it. */
const nameMembers = {
  keyQuorums: 'display_name',
  policies: 'name',
  webhookEndpoints: 'description',
} as const;

const lists = {
  keyQuorums: 'listKeyQuorums',
  policies: 'listPolicies',
  webhookEndpoints: 'listWebhookEndpoints',
} as const satisfies Record<string, OperationId>;

/**
 * For each section, the operation that changes its resources, the name of its path parameter, and the members that it
 * can change.
 */
const updates: { readonly [S in NamedSection]?: readonly [OperationId, string, readonly string[]] } = {
  policies: ['updatePolicy', 'policy_id', ['name', 'rules']],
  webhookEndpoints: ['updateWebhookEndpoint', 'endpoint_id', ['url', 'description', 'event_types']],
};

/** A reference to a resource of the file or of the seed data, or to a seeded key. */
const REFERENCE = /^\$(users|keyQuorums|policies|wallets|webhookEndpoints|keys)\.([A-Za-z0-9_ -]{1,50})$/;

/** Thrown when a resource cannot be created. The problem has already been recorded. */
class FaultyWorldError extends Error {}

interface Run {
  readonly context: Omit<ControlContext, 'signal'>;
  readonly stopping: AbortSignal;
  readonly readBalance: ReadBalance;
  readonly file: Pick<ConfigFile, 'name' | 'world'>;
  readonly before: World | undefined;
  readonly applied: string[];
  readonly needsReset: string[];
  readonly faults: string[];
  /** The resources so far, by `section.name`. The value is undefined while the resource is being created. */
  readonly resources: Map<string, Promise<Resource> | undefined>;
  readonly listed: Map<string, readonly Resource[]>;
}

export function declaredWorld(
  context: Run['context'],
  options: Pick<Run, 'stopping' | 'readBalance'>,
): DeclaredWorld {
  let before: World | undefined;
  let ownFaults: readonly string[] = [];
  return {
    async apply(file) {
      const run: Run = {
        ...{ ...options, context, file, before, applied: [], needsReset: [], faults: [] },
        ...{ resources: new Map(), listed: new Map() },
      };
      const { world } = file;
      const areSameRules = isDeepStrictEqual(before?.faults, world.faults);
      const keepsRules = areSameRules && ownFaults.every((id) => context.faults.find(id) !== undefined);
      // Fault rules spare requests of the sandbox itself, but not the events and transactions that these cause.
      if (!keepsRules) for (const id of ownFaults) context.faults.remove(id);
      for (const section of Object.keys(namedSections) as NamedSection[]) {
        for (const name of Object.keys(world[section])) await unlessFaulty(() => ensure(run, section, name));
      }
      for (const [index, body] of world.balances.entries()) await unlessFaulty(() => raise(run, index, body));
      if (!keepsRules) {
        ownFaults = [];
        for (const [index, body] of world.faults.entries()) {
          const id = await unlessFaulty(() => addRule(run, index, body));
          if (id !== undefined) ownFaults = [...ownFaults, id];
        }
      }
      noteRemoved(run);
      before = world;
      return run;
    },
  };
}

async function unlessFaulty<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof FaultyWorldError) return undefined;
    throw error;
  }
}

/** Finds or creates a resource, after the resources to which its body refers. */
async function ensure(run: Run, section: NamedSection, name: string): Promise<Resource> {
  const key = `${section}.${name}`;
  if (run.resources.has(key)) {
    const known = run.resources.get(key);
    return known ?? fail(run, `/${section}/${name}`, 'expected no reference that leads back to itself');
  }
  run.resources.set(key, undefined);
  const found = make(run, section, name);
  // A problem is recorded only once, so resources that refer to a faulty resource report no problem of their own.
  found.catch(() => undefined);
  const resource = await found.finally(() => run.resources.set(key, found));
  return resource;
}

async function make(run: Run, section: NamedSection, name: string): Promise<Resource> {
  const at = `/${section}/${name}`;
  const declared = run.file.world[section][name]!;
  const found = await find(run, section, { at, name: nameOf(section, name, declared) });
  if (found !== undefined) {
    const previous = run.before?.[section][name];
    if (previous === undefined || isDeepStrictEqual(previous, declared)) return found;
    return change(run, section, name, found);
  }
  const body = (await resolved(run, withName(section, name, declared), { at, wants: 'id' })) as Body;
  const created = await call(run, namedSections[section], { at, body });
  run.applied.push(`${at}: created`);
  return created;
}

/** Makes the changes that the API allows without an owner's signature. Other changes need a reset. */
async function change(run: Run, section: NamedSection, name: string, found: Resource): Promise<Resource> {
  const at = `/${section}/${name}`;
  const [operation, parameter, members] = updates[section] ?? [];
  if (operation === undefined) {
    run.needsReset.push(`${at}: changed`);
    return found;
  }
  const declared = withName(section, name, run.file.world[section][name]!);
  const body = (await resolved(run, declared, { at, wants: 'id' })) as Body;
  const changes = Object.fromEntries(Object.entries(body).filter(([key]) => members!.includes(key)));
  const changed = await call(run, operation, { at, body: changes, path: { [parameter!]: found.id } });
  run.applied.push(`${at}: changed`);
  return changed;
}

function noteRemoved({ before, file, needsReset }: Run): void {
  if (before === undefined) return;
  for (const section of Object.keys(namedSections) as NamedSection[]) {
    for (const name of Object.keys(before[section])) {
      if (!Object.hasOwn(file.world[section], name)) needsReset.push(`/${section}/${name}: removed`);
    }
  }
}

/** Returns the name by which a resource is recognized. */
function nameOf(section: NamedSection, name: string, body: Body | undefined): string {
  if (section === 'wallets') return String(body?.external_id ?? name);
  return section === 'users' ? name : String(body?.[nameMembers[section]] ?? name);
}

function withName(section: NamedSection, name: string, body: Body): Body {
  if (section === 'wallets') return { external_id: name, display_name: name, ...body };
  if (section !== 'users') return { [nameMembers[section]]: name, ...body };
  const accounts = [body.linked_accounts ?? []].flat() as readonly { readonly type?: unknown }[];
  if (accounts.some(({ type }) => type === 'custom_auth')) return body;
  return { ...body, linked_accounts: [...accounts, { type: 'custom_auth', custom_user_id: name }] };
}

/** Finds a resource by its name. */
async function find(
  run: Run,
  section: NamedSection,
  { at, name }: { readonly at: string; readonly name: string },
): Promise<Resource | undefined> {
  if (section === 'wallets') return ask(run, 'getWallet', { at, path: { wallet_id: `ext_wal_${name}` } });
  if (section === 'users') {
    const custom = customIdOf(run.file.world.users[name]) ?? name;
    return ask(run, 'getUserByCustomAuthID', { at, body: { custom_user_id: custom } });
  }
  const known = run.listed.get(section) ?? (await listAll(run, lists[section], at));
  run.listed.set(section, known);
  return known.find((each) => each[nameMembers[section]] === name);
}

/** Calls an operation that reads. Returns undefined if nothing has the name, or if the name is invalid. */
async function ask<T = Resource>(
  run: Run,
  operation: OperationId,
  { at, ...given }: Call & { readonly at: string },
): Promise<T | undefined> {
  const { status, body } = await send(run, operation, given);
  if (status === 200) return body as T;
  // After any other failure it is unknown whether the resource exists, and creating it would duplicate it.
  return [400, 404].includes(status) ? undefined : noteRefusal(run, at, body as Refusal);
}

function customIdOf(user: Body | undefined): string | undefined {
  const accounts = [user?.linked_accounts ?? []].flat() as readonly Partial<Body>[];
  const custom = accounts.find(({ type }) => type === 'custom_auth');
  return custom === undefined ? undefined : String(custom.custom_user_id);
}

async function listAll(run: Run, operation: OperationId, at: string): Promise<readonly Resource[]> {
  const all: Resource[] = [];
  for (let cursor: unknown; ; ) {
    const query = { limit: 100, ...(typeof cursor === 'string' ? { cursor } : {}) };
    const page = await ask<Page>(run, operation, { at, query });
    all.push(...(page?.data ?? []));
    cursor = page?.next_cursor;
    if (typeof cursor !== 'string') return all;
  }
}

interface Page {
  readonly data?: readonly Resource[];
  readonly next_cursor?: unknown;
}

/**
 * Returns a copy of a body in which each reference is replaced by the id, the address or the key to which it refers.
 * Creates the declared resources that do not exist yet.
 */
async function resolved(
  run: Run,
  value: unknown,
  place: { readonly at: string; readonly wants: 'id' | 'address' },
): Promise<unknown> {
  const { at, wants } = place;
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const [index, each] of value.entries())
      items.push(await resolved(run, each, { ...place, at: `${at}/${index}` }));
    return items;
  }
  if (typeof value === 'object' && value !== null) {
    const members: [string, unknown][] = [];
    for (const [name, each] of Object.entries(value))
      members.push([name, await resolved(run, each, { ...place, at: `${at}/${name}` })]);
    return Object.fromEntries(members);
  }
  if (typeof value !== 'string' || !value.startsWith('$')) return value;
  const [, section = '', name = ''] = REFERENCE.exec(value) ?? [];
  if (section === 'keys') {
    const [key] = [...keyNames].find(([, owner]) => owner.toLowerCase() === name) ?? [];
    return key ?? fail(run, at, `expected $keys.alice, $keys.bob or $keys.carol, got \`${value}\``);
  }
  if (section === '') {
    return fail(run, at, `expected a reference such as $users.alice or $policies.small, got \`${value}\``);
  }
  const kind = section as NamedSection;
  const resource = Object.hasOwn(run.file.world[kind], name)
    ? await ensure(run, kind, name)
    : await find(run, kind, { at, name });
  if (resource === undefined) {
    const names = Object.keys(run.file.world[kind]).map((each) => `$${kind}.${each}`);
    const known = names.length === 0 ? `a member of \`${kind}\`` : names.join(', ');
    return fail(run, at, `expected ${known}, got \`${value}\``);
  }
  return wants === 'address' ? resource.address : resource.id;
}

/** Brings the balance of an address up to an amount, and records whether it was lower. */
async function raise(run: Run, index: number, declared: Body): Promise<void> {
  const at = `/balances/${index}`;
  const body = (await resolved(run, declared, { at, wants: 'address' })) as Body;
  requireValid(run, at, 'fundAddress', body);
  await refusedAt(run, at, async () => {
    const wanted = body as FundSandboxAddressRequest;
    if (await raiseBalance(wanted, run.context, run.readBalance)) run.applied.push(`${at}: funded`);
  });
}

/** Adds a fault rule and returns its id. */
async function addRule(run: Run, index: number, declared: Body): Promise<string> {
  const at = `/faults/${index}`;
  const body = (await resolved(run, declared, { at, wants: 'id' })) as Body;
  requireValid(run, at, 'addFault', body);
  const input = { path: {}, query: {}, body: body as AddSandboxFaultRequest };
  const signal = run.stopping;
  const rule = await refusedAt(run, at, () => addFault(input, { ...run.context, signal }));
  run.applied.push(`${at}: added as ${rule.id}`);
  return rule.id;
}

function requireValid(run: Run, at: string, operation: 'fundAddress' | 'addFault', body: Body): void {
  const validate = requestValidators[operation].body!;
  if (!validate(body)) noteRefusal(run, at, bodyFault(validate.errors ?? [], body).toBody());
}

async function refusedAt<T>(run: Run, at: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return noteRefusal(run, at, error.toBody());
  }
}

interface Call {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: Body;
}

/** Calls an operation of the API that must succeed. */
async function call(
  run: Run,
  operation: OperationId,
  { at, ...given }: Call & { readonly at: string },
): Promise<Resource> {
  const { status, body } = await send(run, operation, given);
  if (status >= 200 && status < 300) return body as Resource;
  return noteRefusal(run, at, body as Refusal);
}

async function send(run: Run, operation: OperationId, { path = {}, query = {}, body }: Call) {
  const request = { operation, path, query, headers: {}, body, signAs: [], isRecorded: false };
  const { status, text } = await run.context.ownApi.call(request, run.stopping);
  return { status, body: (text === '' ? {} : JSON.parse(text)) as unknown };
}

interface Refusal {
  readonly error?: string;
  readonly data?: { readonly issues?: readonly { readonly pointer: string; readonly message: string }[] };
}

function noteRefusal(run: Run, at: string, { error = 'the sandbox did not answer', data }: Refusal): never {
  const { issues } = data ?? {};
  if (issues === undefined) return fail(run, at, error);
  for (const { pointer, message } of issues) run.faults.push(`${run.file.name}: ${at}${pointer}: ${message}`);
  throw new FaultyWorldError();
}

function fail(run: Run, at: string, message: string): never {
  run.faults.push(`${run.file.name}: ${at}: ${message}`);
  throw new FaultyWorldError();
}
