import * as check from './checks.ts';
import { type Faults, readText } from './checks.ts';
import type { Reader } from './setting.ts';
import { type Settings, settings } from './settings.ts';

/** A cell: a database, or a schema of one, with all tables. An app and everything that belongs to it is in one cell. */
export interface CellSettings {
  readonly name: string;
  readonly databaseUrl: string;
  /** The number of connections that each worker has for requests. */
  readonly poolSize: number;
  /** A streaming replica of the database, from which lists are read. */
  readonly replicaUrl?: string | undefined;
  /** The file of the last signed checkpoint of the audit log. Without it, the checkpoint is kept only in memory. */
  readonly checkpointFile?: string | undefined;
  /** Whether new apps may be placed in this cell. */
  readonly acceptsApps: boolean;
}

/** The database of a cell, as commands use it. */
export interface CellDatabase {
  readonly kind: 'postgres';
  readonly url: string;
  /** The name of the cell in messages, in a deployment with a cells file. */
  readonly cell?: string;
}

export function databaseOfCell({
  name,
  databaseUrl: url,
}: Pick<CellSettings, 'name' | 'databaseUrl'>): CellDatabase {
  return { kind: 'postgres', url, ...(name !== ONLY_CELL && { cell: name }) };
}

/** Returns the fault of an option that names none of these cells, or is missing. */
export function unknownCell(cells: readonly Pick<CellSettings, 'name'>[], given: string | undefined): string {
  const names = cells.map(({ name }) => `\`${name}\``).join(', ');
  return `--cell: expected one of ${names}${given === undefined ? '' : `, got \`${given}\``}`;
}

/** All cells of a deployment. */
export interface CellsSettings {
  /** The database that contains the cell of each app; undefined for a deployment with one cell. */
  readonly directoryUrl: string | undefined;
  /** The cells. Apps that are not in the directory belong to the first one. */
  readonly cells: readonly [CellSettings, ...CellSettings[]];
}

/** The name of the only cell of a deployment without a cells file. */
export const ONLY_CELL = 'default';

/** The content of the cells file. */
export interface CellsFile {
  directory_url: string;
  cells: {
    name: string;
    database_url: string;
    pool?: number;
    replica_url?: string;
    checkpoint_file?: string;
    accepts_apps?: boolean;
  }[];
}

const fileKeys = ['directory_url', 'cells'];
const cellKeys = ['name', 'database_url', 'pool', 'replica_url', 'checkpoint_file', 'accepts_apps'];
const names = /^[a-z0-9][a-z0-9-]{0,31}$/;

/**
 * Reads the file that CUSTOS_CELLS_FILE names. Every fault names the file and the place in it.
 *
 * @param poolSize the pool size of cells that do not set one.
 * @returns undefined after a fault.
 */
function readCellsFile(
  faults: Faults,
  { variable, path, poolSize }: FileNames & { readonly poolSize: number },
): CellsSettings | undefined {
  const before = faults.length;
  const file = parseCellsFile(faults, variable, path);
  if (file === undefined || faults.length > before) return undefined;
  const [first, ...others] = file.cells.map((cell) => ({
    name: cell.name,
    databaseUrl: cell.database_url,
    poolSize: cell.pool ?? poolSize,
    replicaUrl: cell.replica_url,
    checkpointFile: cell.checkpoint_file,
    acceptsApps: cell.accepts_apps ?? true,
  }));
  return first && { directoryUrl: file.directory_url, cells: [first, ...others] };
}

function parseCellsFile(faults: Faults, variable: string, path: string): CellsFile | undefined {
  const text = readText(faults, variable, path);
  if (text === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    checkCellsFile(faults, parsed, { variable, path });
    return parsed as CellsFile;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    faults.push(`${variable}: \`${path}\`: expected JSON (${error.message})`);
    return undefined;
  }
}

/** The file in faults: the setting that names it, and its path. */
interface FileNames {
  readonly variable: string;
  readonly path: string;
}

/** Records a fault for everything in the content of a cells file that is missing, unknown or wrong. */
export function checkCellsFile(faults: Faults, content: unknown, { variable, path }: FileNames): void {
  const fault = (place: string, expected: string): void => {
    faults.push(`${variable}: \`${path}\` at ${place}: expected ${expected}`);
  };
  const file = content as Partial<CellsFile> | null;
  if (typeof file !== 'object' || file === null || !Array.isArray(file.cells) || file.cells.length === 0) {
    fault('/cells', 'a list of at least one cell');
    return;
  }
  for (const key of Object.keys(file))
    if (!fileKeys.includes(key)) fault(`/${key}`, `one of ${fileKeys.join(', ')}`);
  check.databaseUrl(faults, `${variable}: \`${path}\` at /directory_url`, file.directory_url);
  for (const [index, cell] of file.cells.entries())
    checkCell(faults, cell, `/cells/${index}`, { variable, path, fault });
  for (const key of ['name', 'database_url'] as const) {
    const seen = new Map<unknown, string>();
    for (const [index, cell] of file.cells.entries()) {
      const value = cell?.[key];
      const earlier = seen.get(value);
      if (value !== undefined && earlier !== undefined)
        fault(`/cells/${index}/${key}`, `another ${key} than that of ${earlier}`);
      // An equal name says nothing about which cell is meant.
      seen.set(value, earlier ?? (key === 'name' ? `/cells/${index}` : `the cell \`${cell?.name}\``));
    }
  }
}

function checkCell(
  faults: Faults,
  cell: Partial<CellsFile['cells'][number]> | null,
  at: string,
  { variable, path, fault }: FileNames & { readonly fault: (place: string, expected: string) => void },
): void {
  if (typeof cell !== 'object' || cell === null) {
    fault(at, 'an object');
    return;
  }
  for (const key of Object.keys(cell))
    if (!cellKeys.includes(key)) fault(`${at}/${key}`, `one of ${cellKeys.join(', ')}`);
  if (typeof cell.name !== 'string' || !names.test(cell.name))
    fault(`${at}/name`, 'a name of lower-case letters, digits and `-`, at most 32');
  const prefix = `${variable}: \`${path}\` at ${at}`;
  check.databaseUrl(faults, `${prefix}/database_url`, cell.database_url);
  if (cell.replica_url !== undefined) check.databaseUrl(faults, `${prefix}/replica_url`, cell.replica_url);
  const { pool, accepts_apps: acceptsApps, checkpoint_file: checkpointFile } = cell;
  if (pool !== undefined && !(Number.isInteger(pool) && pool >= 1 && pool <= 1000))
    fault(`${at}/pool`, 'a whole number from 1 to 1000');
  if (acceptsApps !== undefined && typeof acceptsApps !== 'boolean')
    fault(`${at}/accepts_apps`, 'true or false');
  if (checkpointFile !== undefined && (typeof checkpointFile !== 'string' || !checkpointFile.startsWith('/')))
    fault(`${at}/checkpoint_file`, 'an absolute path');
}

/** The settings of the only database. With a cells file, they are in that file instead. */
const ofOneDatabase = ['databaseUrl', 'databaseReplicaUrl', 'checkpointFile'] as const;

/** Reads the cells file; undefined without one. */
export function cellsOf<C extends 'serve' | 'migrate' | 'keys'>(
  { faults, name, value }: Reader<Settings, C>,
  env: check.Environment,
  poolSize: number,
): CellsSettings | undefined {
  const path = value('cellsFile') as string | undefined;
  if (path === undefined) return undefined;
  for (const key of ofOneDatabase) {
    const variable = settings[key].variable;
    if (env[variable] !== undefined)
      faults.push(`${variable}: expected none, because ${name('cellsFile')} is set`);
  }
  // The server does not start after a fault, so nothing uses these values.
  const unusable = { name: '', databaseUrl: '', poolSize, acceptsApps: true };
  return (
    readCellsFile(faults, { variable: name('cellsFile'), path, poolSize }) ?? {
      ...{ directoryUrl: '', cells: [unusable] },
    }
  );
}
