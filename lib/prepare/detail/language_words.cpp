#include "prepare/detail/language_words.hpp"

#include <algorithm>

namespace tern::prepare::detail {

const std::vector<Language>& languages() {
  static const std::vector<Language> all = {
      {"English", "svop",
       "the baker|my sister|our neighbour|a young doctor|the teacher|their uncle|an old sailor|the "
       "child|her friend|nobody",
       "buys|has found|wants|is looking for|sells|brings|has lost|needs",
       "the red book|some bread|a new lamp|two chairs|an apple|the letter|this map|a cup of "
       "tea|the "
       "keys|that picture",
       "at the market|in the kitchen|before noon|near the station|for the first time|without a "
       "word|after work|on the hill"},
      {"German", "svop",
       "der Bäcker|meine Schwester|unser Nachbar|eine junge Ärztin|die Lehrerin|ihr Onkel|ein "
       "alter "
       "Seemann|das Kind|ihre Freundin|niemand",
       "kauft|sucht|findet|verkauft|bringt|verliert|möchte|braucht",
       "das rote Buch|etwas Brot|eine neue Lampe|zwei Stühle|einen Apfel|den Brief|diese "
       "Karte|eine "
       "Tasse Tee|die Schlüssel|jenes Bild",
       "auf dem Markt|in der Küche|vor dem Mittag|neben dem Bahnhof|zum ersten Mal|ohne ein "
       "Wort|nach der Arbeit|auf dem Hügel"},
      {"Dutch", "svop",
       "de bakker|mijn zus|onze buurman|een jonge dokter|de leraar|hun oom|een oude zeeman|het "
       "kind|haar vriendin|niemand",
       "koopt|zoekt|vindt|verkoopt|brengt|verliest|wil|heeft nodig",
       "het rode boek|wat brood|een nieuwe lamp|twee stoelen|een appel|de brief|deze kaart|een "
       "kopje "
       "thee|de sleutels|dat schilderij",
       "op de markt|in de keuken|voor de middag|bij het station|voor het eerst|zonder een woord|na "
       "het werk|op de heuvel"},
      {"Swedish", "svop",
       "bagaren|min syster|vår granne|en ung läkare|läraren|deras farbror|en gammal "
       "sjöman|barnet|hennes vän|ingen",
       "köper|söker|hittar|säljer|hämtar|förlorar|vill ha|behöver",
       "den röda boken|lite bröd|en ny lampa|två stolar|ett äpple|brevet|den här kartan|en kopp "
       "te|nycklarna|den där tavlan",
       "på torget|i köket|före middagen|nära stationen|för första gången|utan ett ord|efter "
       "jobbet|på kullen"},
      {"French", "svop",
       "le boulanger|ma soeur|notre voisin|un jeune médecin|la maîtresse|leur oncle|un vieux "
       "marin|l'enfant|son amie|personne ici ne",
       "achète|cherche|trouve|vend|apporte|perd|voudrait|demande",
       "le livre rouge|du pain|une lampe neuve|deux chaises|une pomme|la lettre|cette carte|une "
       "tasse de thé|les clés|ce tableau",
       "au marché|dans la cuisine|avant midi|près de la gare|pour la première fois|sans un "
       "mot|après "
       "le travail|sur la colline"},
      {"Spanish", "svop",
       "el panadero|mi hermana|nuestro vecino|una joven doctora|la maestra|su tío|un viejo "
       "marinero|el niño|su amiga|nadie",
       "compra|busca|encuentra|vende|trae|pierde|quiere|necesita",
       "el libro rojo|un poco de pan|una lámpara nueva|dos sillas|una manzana|la carta|este "
       "mapa|una "
       "taza de té|las llaves|aquel cuadro",
       "en el mercado|en la cocina|antes del mediodía|cerca de la estación|por primera vez|sin "
       "decir "
       "palabra|después del trabajo|en la colina"},
      {"Italian", "svop",
       "il fornaio|mia sorella|il nostro vicino|una giovane dottoressa|la maestra|loro zio|un "
       "vecchio marinaio|il bambino|la sua amica|nessuno",
       "compra|cerca|trova|vende|porta|perde|vorrebbe|chiede",
       "il libro rosso|del pane|una lampada nuova|due sedie|una mela|la lettera|questa mappa|una "
       "tazza di tè|le chiavi|quel quadro",
       "al mercato|in cucina|prima di mezzogiorno|vicino alla stazione|per la prima volta|senza "
       "una "
       "parola|dopo il lavoro|sulla collina"},
      {"Finnish", "svop",
       "leipuri|sisareni|naapurimme|nuori lääkäri|opettaja|heidän setänsä|vanha "
       "merimies|lapsi|hänen "
       "ystävänsä|kukaan ei enää",
       "ostaa|etsii|löytää|myy|tuo|kadottaa|haluaa|tarvitsee",
       "punaisen kirjan|vähän leipää|uuden lampun|kaksi tuolia|omenan|kirjeen|tämän kartan|kupin "
       "teetä|avaimet|tuon taulun",
       "torilla|keittiössä|ennen puoltapäivää|aseman lähellä|ensimmäistä kertaa|sanomatta "
       "sanaakaan|töiden jälkeen|kukkulalla"},
      {"Turkish", "spov",
       "fırıncı|kız kardeşim|komşumuz|genç bir doktor|öğretmen|onların amcası|yaşlı bir "
       "denizci|çocuk|arkadaşı|bugün kimse",
       "alıyor|arıyor|buluyor|satıyor|getiriyor|kaybediyor|istiyor|bekliyor",
       "kırmızı kitabı|biraz ekmek|yeni bir lamba|iki sandalye|bir elma|mektubu|bu haritayı|bir "
       "bardak çay|anahtarları|şu resmi",
       "pazarda|mutfakta|öğleden önce|istasyonun yanında|ilk kez|tek söz etmeden|işten "
       "sonra|tepenin üstünde"},
      {"Russian", "svop",
       "пекарь|моя сестра|наш сосед|молодой врач|учительница|их дядя|старый моряк|ребёнок|её "
       "подруга|кто-то",
       "покупает|ищет|находит|продаёт|приносит|теряет|хочет|просит",
       "красную книгу|немного хлеба|новую лампу|два стула|яблоко|письмо|эту карту|чашку "
       "чая|ключи|ту картину",
       "на рынке|на кухне|до полудня|возле вокзала|в первый раз|без единого слова|после работы|на "
       "холме"},
      {"Greek", "svop",
       "ο φούρναρης|η αδελφή μου|ο γείτονάς μας|ένας νέος γιατρός|η δασκάλα|ο θείος τους|ένας "
       "γέρος "
       "ναύτης|το παιδί|η φίλη της|κανείς δεν",
       "αγοράζει|ψάχνει|βρίσκει|πουλάει|φέρνει|χάνει|θέλει|ζητάει",
       "το κόκκινο βιβλίο|λίγο ψωμί|μια καινούρια λάμπα|δύο καρέκλες|ένα μήλο|το γράμμα|αυτόν τον "
       "χάρτη|ένα φλιτζάνι τσάι|τα κλειδιά|εκείνη την εικόνα",
       "στην αγορά|στην κουζίνα|πριν το μεσημέρι|κοντά στον σταθμό|για πρώτη φορά|χωρίς "
       "λέξη|μετά τη δουλειά|στον λόφο"},
      {"Arabic", "vsop", "الخباز|أخي|جارنا|طبيب شاب|المعلم|عمهم|بحار عجوز|الولد|صديقه|رجل ما",
       "يشتري|يبحث عن|يجد|يبيع|يحضر|يفقد|يريد|يطلب",
       "الكتاب الأحمر|بعض الخبز|مصباح جديد|كرسيين|تفاحة|الرسالة|هذه الخريطة|كوب من "
       "الشاي|المفاتيح|تلك الصورة",
       "في السوق|في المطبخ|قبل الظهر|قرب المحطة|لأول مرة|دون كلمة|بعد العمل|على التل"}};
  return all;
}

std::vector<std::string_view> phrases(std::string_view list) {
  std::vector<std::string_view> all;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find('|'), list.size());
    all.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return all;
}

}  // namespace tern::prepare::detail
