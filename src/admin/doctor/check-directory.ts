import type { CellSettings, CellsSettings } from '../../config/cells.ts';
import { databaseOfCell } from '../../config/cells.ts';
import type { CellDirectory } from '../../storage/cell-directory.ts';
import { placeOf } from '../../storage/schema/cell-schema.ts';
import { type Finding, fault, ok } from '../../tools/findings.ts';
import { administerApps } from '../administration.ts';
import { unknownCells, withDirectory } from '../cells.ts';

const ADVICE = 'requests of these apps get 401 or 503; see "Operation" in docs/cells.md';
const NAMED = 5;

/** Checks that the directory knows the cells of all apps, and that no two cells are the same schema. */
export async function checkDirectory({ directoryUrl, cells }: CellsSettings): Promise<Finding[]> {
  if (directoryUrl === undefined) return [];
  const shared = sharedSchemas(cells);
  try {
    return await withDirectory(directoryUrl, async (directory) => {
      const apps = await directory.countByCell();
      const lost = unknownCells(cells, apps).map((text) =>
        fault('directory', text, 'add the cell to the cells file again'),
      );
      const compared = await Promise.all(cells.map((cell, at) => compareApps(directory, cell, at === 0)));
      const found = [...lost, ...compared.flat()];
      const count = [...apps.values()].reduce((sum, each) => sum + each, 0);
      return [...(found.length > 0 ? found : [ok('directory', `it has ${count} app(s)`)]), ...(await shared)];
    });
  } catch (error) {
    const text = (error as Error).message;
    return [fault('directory', text, 'check directory_url in the cells file'), ...(await shared)];
  }
}

/** Compares the apps of a cell with their entries. The first cell has all apps without an entry. */
async function compareApps(
  directory: CellDirectory,
  cell: CellSettings,
  isFirst: boolean,
): Promise<Finding[]> {
  // A cell that cannot be read is a finding of its database.
  const apps = await administerApps(databaseOfCell(cell))
    .listApps()
    .catch(() => []);
  const ids = apps.map(({ id }) => id);
  const without = isFirst ? [] : await directory.withoutEntry(ids);
  const elsewhere = await directory.placedElsewhere(cell.name, ids);
  const list = (all: readonly string[]): string =>
    `${all.slice(0, NAMED).join(', ')}${all.length > NAMED ? ` and ${all.length - NAMED} more` : ''}`;
  return [
    ...(without.length === 0
      ? []
      : [
          fault(
            'directory',
            `it has no entry for apps of the cell \`${cell.name}\`: ${list(without)}`,
            ADVICE,
          ),
        ]),
    ...(elsewhere.length === 0
      ? []
      : [
          fault(
            'directory',
            `it places apps of the cell \`${cell.name}\` in another one: ${list(elsewhere.map((each) => `${each.app_id} in \`${each.cell}\``))}`,
            'repeat `custos apps move` for each, which removes what a restore has brought back',
          ),
        ]),
  ];
}

async function sharedSchemas(cells: readonly CellSettings[]): Promise<Finding[]> {
  const places = await Promise.all(
    cells.map(async ({ name, databaseUrl }) => ({
      name,
      place: await placeOf(databaseUrl).catch(() => undefined),
    })),
  );
  return places.flatMap(({ name, place }, at) => {
    const owner = place === undefined ? undefined : places.find((each) => each.place === place);
    if (owner === undefined || places.indexOf(owner) === at) return [];
    const text = `the cells \`${owner.name}\` and \`${name}\` have the same database and schema`;
    return [fault('cells', text, 'remove one of them from the cells file; servers do not start with both')];
  });
}
