import { type SelectModifierNode, type SelectQueryNode, SqliteQueryCompiler } from 'kysely';

const rowLocks: ReadonlySet<SelectModifierNode['modifier']> = new Set([
  'ForUpdate',
  'ForNoKeyUpdate',
  'ForShare',
  'ForKeyShare',
  'NoWait',
  'SkipLocked',
]);

/**
 * Kysely's compiler for SQLite without row locks (`for update`, `skip locked` and the like). SQLite neither parses nor
 * needs them; see `locks.ts`. MikroORM also leaves out the `lockMode` of its own queries.
 *
 * NOTE: a class, because Kysely's compilers can only be extended by inheritance.
 */
export class LocklessQueryCompiler extends SqliteQueryCompiler {
  protected override visitSelectQuery(node: SelectQueryNode): void {
    super.visitSelectQuery(withoutRowLocks(node));
  }
}

function withoutRowLocks(node: SelectQueryNode): SelectQueryNode {
  if (node.endModifiers === undefined) return node;
  const endModifiers = node.endModifiers.filter(({ modifier }) => !rowLocks.has(modifier));
  return { ...node, endModifiers };
}
