import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';

// The loader of the published program. It keeps the bytecode of an earlier start, including the functions that were
// compiled while it ran, and loads the program with it: without, half of a start is compiling. Node's own compile cache
// contains only what is compiled at once, and its default folder can be created by any user of the machine.

/** Identifies the content of the program. Replaced by the build. */
declare const PROGRAM_HASH: string;

/** What the program exports. */
interface Program {
  /** Runs the command line of this process. */
  start(): void;
}

/** When a server has started, so the bytecode includes what a start compiles. */
const STARTED_MS = 2_000;

/** Of all versions and commands in a folder. The oldest ones are deleted. */
const KEPT_FILES = 12;
const WRITTEN_WITHIN_MS = 60_000;

const CHECKSUM_BYTES = 4;

/** Which program to load, and for what. */
export interface ProgramPlace {
  /** The folder with `program.cjs`. */
  readonly folder: string;
  /** Identifies its content. */
  readonly hash: string;
  /** The part of the program that runs, which has bytecode of its own. */
  readonly part: string;
  readonly env: NodeJS.ProcessEnv;
  /** The flags on the command line. V8 refuses the bytecode of a process with other flags of V8. */
  readonly execArgv: readonly string[];
  /** When its bytecode is kept. */
  readonly startedMs: number;
}

/** Loads the program beside this file. */
export function loadProgram(caller: Pick<ProgramPlace, 'part' | 'env'>): Program {
  const own = { folder: import.meta.dirname, hash: PROGRAM_HASH, startedMs: STARTED_MS };
  return loadScript({ ...caller, ...own, execArgv: process.execArgv }).exports as Program;
}

/** Loads a program, with kept bytecode if there is any. */
export function loadScript(place: ProgramPlace): { exports: unknown; hadBytecode: boolean } {
  const filename = join(place.folder, 'program.cjs');
  // ASCII, which the build checks; this is the fastest way to read it.
  const source = readFileSync(filename, 'latin1');
  const name = fileName(place);
  const folders = cacheFolders(place);
  const cachedData = folders.map((folder) => readBytecode(join(folder, name), filename)).find(Boolean);
  const script = new Script(source, { filename, ...(cachedData && { cachedData }) });
  const hadBytecode = cachedData !== undefined && script.cachedDataRejected === false;
  if (!hadBytecode) keepBytecode(script, { folders, name, startedMs: place.startedMs });
  const module: { exports: unknown } = { exports: {} };
  const load = script.runInThisContext();
  const require = createRequire(filename);
  load(module.exports, require, module, filename, place.folder, pathToFileURL(filename).href);
  return { exports: module.exports, hadBytecode };
}

/**
 * Everything on which bytecode depends but flags in `NODE_OPTIONS`, which V8 checks itself. Starts with and without a flag
 * have files of their own, or each would replace that of the other.
 */
function fileName({ part, hash, execArgv }: ProgramPlace): string {
  const flags = execArgv.length === 0 ? '' : `-${crc32(execArgv.join(' ')).toString(16)}`;
  return `program-${part}-${hash}-${process.version}-${process.arch}${flags}.cache`;
}

/**
 * Where bytecode is kept, in order of preference: beside the program, which only those can change who can change the
 * program, or in the user's own cache. `NODE_COMPILE_CACHE` and `NODE_DISABLE_COMPILE_CACHE` have the same meaning as for
 * Node.
 */
function cacheFolders({ folder, env }: ProgramPlace): string[] {
  if (env.NODE_DISABLE_COMPILE_CACHE) return [];
  if (env.NODE_COMPILE_CACHE) return [env.NODE_COMPILE_CACHE];
  const userCache = env.XDG_CACHE_HOME || join(homedir(), '.cache');
  return [folder, join(userCache, 'custos')];
}

/**
 * Reads bytecode that this user or the owner of the program has written. V8 does not check bytecode, so bytecode that
 * anyone else can write would be code of theirs, and incomplete bytecode ends the process.
 */
function readBytecode(file: string, program: string): Buffer | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, 'r');
    const { uid, mode } = fstatSync(descriptor);
    // Windows has neither; there, the folders are protected by their own rules.
    if (process.getuid !== undefined) {
      const isOurs = uid === process.getuid() || uid === statSync(program).uid;
      if (!isOurs || (mode & 0o022) !== 0) return undefined;
    }
    const content = readFileSync(descriptor);
    const data = content.subarray(CHECKSUM_BYTES);
    return content.readUInt32LE(0) === crc32(data) ? data : undefined;
  } catch {
    // Absent or incomplete.
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Writes the bytecode once, when a server has started or a command ends. */
function keepBytecode(
  script: Script,
  { folders, name, startedMs }: { folders: readonly string[]; name: string; startedMs: number },
): void {
  const write = (): void => {
    clearTimeout(timer);
    process.off('exit', write);
    const data = script.createCachedData();
    const checksum = Buffer.alloc(CHECKSUM_BYTES);
    checksum.writeUInt32LE(crc32(data));
    // Stops at the first folder that can be written.
    folders.some((folder) => writeBytecode(folder, name, [checksum, data]));
  };
  const timer = setTimeout(write, startedMs).unref();
  process.once('exit', write);
}

function writeBytecode(folder: string, name: string, parts: readonly Buffer[]): boolean {
  const temporaryFile = join(folder, `${name}.${process.pid}`);
  try {
    if (!existsSync(folder)) mkdirSync(folder, { recursive: true, mode: 0o700 });
    // Not in a folder of another user, not even as root.
    if (process.getuid !== undefined && statSync(folder).uid !== process.getuid()) return false;
    const descriptor = openSync(temporaryFile, 'wx', 0o644);
    try {
      for (const part of parts) writeFileSync(descriptor, part);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporaryFile, join(folder, name));
    removeOldest(folder);
    return true;
  } catch {
    rmSync(temporaryFile, { force: true });
    return false;
  }
}

function removeOldest(folder: string): void {
  const files = readdirSync(folder)
    .filter((name) => /^program-.*\.cache(\.\d+)?$/.test(name))
    .map((name) => ({ name, changedMs: statSync(join(folder, name)).mtimeMs }))
    .sort((a, b) => b.changedMs - a.changedMs);
  const [whole, partial] = [files.filter(isWhole), files.filter((file) => !isWhole(file))];
  // A process that was killed while it wrote leaves a part.
  const left = partial.filter(({ changedMs }) => changedMs < whole[0]!.changedMs - WRITTEN_WITHIN_MS);
  for (const { name } of [...whole.slice(KEPT_FILES), ...left]) rmSync(join(folder, name), { force: true });
}

function isWhole({ name }: { readonly name: string }): boolean {
  return name.endsWith('.cache');
}
