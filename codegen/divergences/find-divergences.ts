import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Choice } from '../choices/read-choices.ts';
import { readChoices } from '../choices/render-choices.ts';
import { contracts, handlerPath } from '../contracts.ts';
import { ContractError, type Document, operationObjects, schemaName } from '../document.ts';
import { type Operation, readOperations } from '../read-operations.ts';
import { nameFollower, pathOf, type Reached } from './follow-names.ts';
import { readSimulated, type SimulatedPart } from './read-simulated.ts';

/** A decision that the server makes where the specification is silent. */
export interface Decision {
  readonly text: string;
  /** The file of the comment. */
  readonly path: string;
  /** The declaration that the decision concerns. Null for the whole file. */
  readonly symbol: string | null;
}

/** How one operation of a sandbox differs from production and from the specification. */
export interface OperationDivergences {
  readonly operation: string;
  readonly tag: string;
  /** The names of simulated parts. */
  readonly simulated: readonly string[];
  readonly decisions: readonly Decision[];
}

export interface Divergences {
  readonly parts: readonly SimulatedPart[];
  readonly operations: readonly OperationDivergences[];
  /** Decisions that many operations share, with the number of those operations. */
  readonly shared: readonly (Decision & { readonly count: number })[];
}

/** Decisions that more operations share are not repeated for each of them. */
const MAX_SHARING = 8;

/**
 * The operations that intents can propose. Every intent operation reaches all of their code, so their decisions are
 * listed only with the direct operations.
 */
const PROPOSALS = { path: 'src/domain/requests/intents/proposals.ts', name: 'proposals' };

/** Names of the objects from which code reads services. */
const SERVICES = /context|services/i;

/**
 * Finds the differences of each operation: the simulated parts and the `CHOICE:` comments that its handler reaches,
 * and the comments in its part of the contract.
 */
export function findDivergences(root: string): Divergences {
  const contract = contracts[0]!;
  const document = JSON.parse(readFileSync(join(root, contract.document), 'utf8')) as Document;
  const parts = readSimulated(root);
  const follower = nameFollower(root, membersOf(root, parts));
  const choices = readChoices(root);
  if (!follower.declares(PROPOSALS.path, PROPOSALS.name)) {
    throw new ContractError(`${PROPOSALS.path}: expected a declaration of \`${PROPOSALS.name}\``);
  }
  const found = readOperations(document).map((operation) => {
    const start = [`${handlerPath(contract, operation)}#${operation.id}`];
    const own = follower.from(start, `${PROPOSALS.path}#${PROPOSALS.name}`);
    const inContract = contractPlaces(document, operation);
    const decided = choices.filter(
      (choice) => isReached(choice, own, follower) || isInContract(choice, inContract),
    );
    return { operation, members: follower.from(start).members, decided };
  });
  const counts = new Map<Choice, number>();
  for (const { decided } of found)
    for (const choice of decided) counts.set(choice, (counts.get(choice) ?? 0) + 1);
  const isOwn = (choice: Choice): boolean => (counts.get(choice) ?? 0) <= MAX_SHARING;
  return {
    parts,
    operations: found.map(({ operation, members, decided }) => ({
      operation: operation.id,
      tag: operation.tag,
      simulated: parts.map(({ name }) => name).filter((name) => members.has(name)),
      decisions: decided.filter(isOwn).map(decisionOf),
    })),
    shared: choices
      .filter((choice) => !isOwn(choice))
      .map((choice) => ({ ...decisionOf(choice), count: counts.get(choice) ?? 0 })),
  };
}

function decisionOf({ text, path, symbol = '' }: Choice): Decision {
  return { text, path, symbol: symbol === '' ? null : symbol };
}

/**
 * Returns the names of parts, and the objects from which they are read.
 *
 * @throws ContractError for a name that is neither a service nor a member of a port.
 */
function membersOf(root: string, parts: readonly SimulatedPart[]): ReadonlyMap<string, RegExp | undefined> {
  const services = readFileSync(join(root, 'src/ports/operation-context.ts'), 'utf8');
  const chains = readFileSync(join(root, 'src/ports/chains.ts'), 'utf8');
  const declares = (source: string, name: string): boolean =>
    new RegExp(`^ {2}readonly ${name}\\??:`, 'm').test(source);
  return new Map(
    parts.map(({ name, path }) => {
      if (declares(services, name)) return [name, SERVICES];
      if (declares(chains, name)) return [name, undefined];
      throw new ContractError(`${path}: \`SIMULATED ${name}\` names no member of Services and of no chain`);
    }),
  );
}

/**
 * Returns whether an operation reaches the code of a comment. A comment on a type, or on a whole file, belongs to every
 * operation that reaches the file.
 */
function isReached(
  { path, symbol }: Choice,
  { places }: Reached,
  { declares }: ReturnType<typeof nameFollower>,
): boolean {
  const [name = ''] = (symbol ?? '').split('.');
  if (path.startsWith('src/') && declares(path, name)) return places.has(`${path}#${name}`);
  return [...places].some((place) => pathOf(place) === path);
}

/**
 * Returns whether a comment belongs to an operation's part of the contract. `symbol` is the keys around the comment,
 * such as `/v1/wallets post` or the name of a schema.
 */
function isInContract({ symbol = '' }: Choice, places: ReadonlySet<string>): boolean {
  const [first = '', second = ''] = symbol.split(' ');
  return places.has(first.startsWith('/') ? `${first} ${second}` : first);
}

/** Returns the path and method of an operation, and the names of the schemas to which it refers. */
function contractPlaces(document: Document, { id, path, method }: Operation): ReadonlySet<string> {
  const found = new Set<string>([`${path} ${method.toLowerCase()}`]);
  const object = operationObjects(document).find(({ operation }) => operation.operationId === id);
  const pending: unknown[] = [object?.operation];
  while (pending.length > 0) {
    const node = pending.pop();
    if (typeof node !== 'object' || node === null) continue;
    const { $ref } = node as { $ref?: unknown };
    if (typeof $ref === 'string' && $ref.startsWith('#/components/schemas/')) {
      const name = schemaName($ref);
      if (!found.has(name)) pending.push(document.components.schemas[name]);
      found.add(name);
    }
    pending.push(...Object.values(node));
  }
  return found;
}
