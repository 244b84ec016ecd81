import type { ZxcvbnFactory, ZxcvbnResult } from '@zxcvbn-ts/core';
import type { User } from '../user-store.ts';
import type { Blocklist } from './blocklist.ts';

/** In code points, which bounds the hashing cost. NIST SP 800-63B-4 §3.1.1.2 and ASVS 5.0 6.2.9 require 64 or more. */
const maxLength = 128;
/** Minimum zxcvbn score of 0 to 4: about 10^8 guesses. */
const minScore = 3;
const serviceName = 'content platform';

/**
 * zxcvbn rates only the first 32 characters. Without these limits 128 symbols block the event loop for seconds, with
 * them for 25 ms.
 */
const effort = { maxLength: 32, l33tMaxSubstitutions: 3 };

let estimator: Promise<ZxcvbnFactory> | undefined;

/**
 * Loads zxcvbn when the first password is checked, because most processes never check one. Its dictionaries take 30 MB of
 * heap, and block the process for half a second.
 */
async function loadEstimator(): Promise<ZxcvbnFactory> {
  const [{ ZxcvbnFactory }, common, english] = await Promise.all([
    import('@zxcvbn-ts/core'),
    import('@zxcvbn-ts/language-common'),
    import('@zxcvbn-ts/language-en'),
  ]);
  return new ZxcvbnFactory({
    dictionary: { ...common.dictionary, ...english.dictionary },
    graphs: common.adjacencyGraphs,
    translations: english.translations,
    ...effort,
  });
}

const userWordsReason = 'It contains your name, your email address or the name of this service.';
const listedReason = 'It is on a list of common or leaked passwords.';
const advice = 'Choose three or four unrelated words.';

/** Returns the user's name and email and the service's name, whole and in parts: ASVS 5.0 6.1.2, 6.2.11. */
function userWords({ email, name }: Pick<User, 'email' | 'name'>): string[] {
  const phrases = [serviceName, name, email, ...email.split('@')].map((phrase) => phrase.normalize('NFC'));
  const plain = phrases.map((phrase) => phrase.normalize('NFD').replace(/\p{M}/gu, ''));
  const words = [...phrases, ...plain].flatMap((phrase) => {
    const parts = phrase.split(/[^\p{L}\p{N}]+/u);
    return [phrase, ...parts, ...['', ' ', '-', '_', '.'].map((separator) => parts.join(separator))];
  });
  return [...new Set(words)].filter((word) => word.length > 2);
}

/** Removes separators: zxcvbn rates any three words with them as strong. Empty if over a quarter are symbols. */
function withoutSeparators(password: string): string {
  const together = password.normalize('NFKC').replace(/[^\p{L}\p{M}\p{N}]+/gu, '');
  return [...together].length * 4 >= [...password].length * 3 ? together : '';
}

function reasonOf({ sequence, feedback: { warning, suggestions } }: ZxcvbnResult): string {
  const words = sequence.some((match) => match['dictionaryName'] === 'userInputs');
  return words ? userWordsReason : (warning ?? suggestions.at(-1)!);
}

/** ASVS 5.0 6.2.4, 6.2.11 and 6.2.12, without rules on character types (6.2.1, 6.2.5). `minLength` in code points. */
export function createPasswordPolicy(minLength: number, blocklist?: Blocklist) {
  return {
    /** Returns a sentence with the reason and advice (§3.1.1.2); undefined: the password is acceptable. */
    async findProblem(password: string, user: Pick<User, 'email' | 'name'>): Promise<string | undefined> {
      const normal = password.normalize('NFC');
      const length = [...normal].length;
      if (length < minLength || length > maxLength)
        return `Must have ${minLength} to ${maxLength} characters; this has ${length}.`;
      if (blocklist?.includes(normal)) return `Is too easy to guess. ${listedReason} ${advice}`;
      // After a failed load, the next check tries again.
      estimator ??= loadEstimator().catch((error: unknown) => {
        estimator = undefined;
        throw error;
      });
      const zxcvbn = await estimator;
      const own = userWords(user);
      const forms = [withoutSeparators(normal), normal].filter(Boolean);
      const weak = forms.map((form) => zxcvbn.check(form, own)).find(({ score }) => score < minScore);
      return weak && `Is too easy to guess. ${reasonOf(weak)} ${advice}`;
    },
  };
}
