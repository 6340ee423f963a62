import { expect, test } from 'vitest';
import { announceDelivery, noteChange, notePolicies } from '../../../src/domain/base/events/events.ts';
import { inSavepoint } from '../../../src/domain/savepoint.ts';
import { unitsOf } from '../../../src/server/unit-of-work.ts';
import { openTestDatabase } from '../../support/databases.ts';

const change = (id: string) => ({ appId: 'acme', what: 'wallet.archived', id });

test('the notes of a savepoint count unless it is rolled back', async () => {
  await using database = await openTestDatabase('sqlite');
  const unit = await unitsOf(database)(true);
  noteChange(unit.notes, change('outer'));
  const refused = inSavepoint(unit, async (_em, notes) => {
    noteChange(notes, change('refused'));
    announceDelivery(notes);
    throw new Error('refused');
  });
  await expect(refused).rejects.toThrow('refused');
  expect(unit.notes.hasDeliveries).toBe(false);
  await inSavepoint(unit, (em, notes) =>
    inSavepoint({ em, notes }, async (_em, innermost) => {
      noteChange(innermost, change('kept'));
      notePolicies(innermost, ['policy']);
      announceDelivery(innermost);
    }),
  );
  expect(unit.notes).toMatchObject({
    changes: [change('outer'), change('kept')],
    policies: ['policy'],
    hasDeliveries: true,
  });
  await unit.commit();
});

test('nothing is noted for a unit of work, or a savepoint, that has ended: it would be lost', async () => {
  await using database = await openTestDatabase('sqlite');
  const [committed, undone] = [await unitsOf(database)(true), await unitsOf(database)(true)];
  const savepoint = await inSavepoint(committed, async (_em, notes) => notes);
  await committed.commit();
  await undone.rollback();
  for (const notes of [savepoint, committed.notes, undone.notes]) {
    expect(() => noteChange(notes, change('late'))).toThrow('has ended');
    expect(() => announceDelivery(notes)).toThrow('has ended');
  }
});
