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
 * Kysely's compiler for SQLite, leaving out row locks (`for update`, `skip locked` and the like), which SQLite
 * neither parses nor needs; see `locks.ts`. MikroORM does the same with the `lockMode` of its own queries.
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
