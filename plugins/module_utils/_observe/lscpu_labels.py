# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How lscpu(1) labels its rows, in English and as util-linux 2.38 translates them.

A label in another language, or another version's wording of it, is simply not found, and what it says is unknown.
"""

from __future__ import annotations

from typing import Dict, Tuple

LABELS: Dict[str, Tuple[str, ...]] = {
    "cpus": (
        "CPU(s)", "CPU", "Počet CPU", "CPU'er", "Processeur(s)", "CPU(-a)", "CPU's", "CPU(er)", "İşlemciler",
        "Процесори",
    ),
    "online": (
        "On-line CPU(s) list", "Seznam zapnutých CPU", "Tilkoblet cpu(er) liste", "Liste der Online-CPU(s)",
        "Lista de la(s) CPU(s) en línea", "Liste de processeur(s) en ligne", "Popis online CPU-a",
        "オンラインになっている CPU のリスト", "Online CPU's-lijst", "Lista aktywnych CPU", "Lista das CPUs online",
        "Lista de CPU(s) on-line", "Lista över aktiva CPU(er)", "Çevrimiçi işlemci(ler) listesi", "Список робочих ЦП",
        "Danh sách CPU trực tuyến", "在线 CPU 列表",
    ),
    "offline": (
        "Off-line CPU(s) list", "Seznam vypnutých CPU", "Frakoblet cpu(er) liste", "Liste der Offline-CPU(s)",
        "Lista de la(s) CPU(s) fuera de línea", "Liste de processeur(s) hors ligne", "Popis offline CPU-a",
        "オフラインになっている CPU のリスト", "Offline CPU's-lijst", "Lista nieaktywnych CPU", "Lista das CPUs offline",
        "Lista de CPU(s) off-line", "Lista över inaktiva CPU(er)", "Çevrimiçi işlemci listesi", "Список вимкнених ЦП",
        "Danh sách CPU ngoại tuyến", "离线 CPU 列表",
    ),
    "masks": (
        "On-line CPU(s) mask", "Maska zapnutých CPU", "Tilkoblet cpu(er) maske", "Maske der Online-CPU(s)",
        "Máscara de la(s) CPU(s) en línea", "Masque de processeur(s) en ligne", "Maska online CPU-a",
        "オンラインになっている CPU のマスク", "Online CPU's-masker", "Maska aktywnych CPU", "Máscara das CPUs online",
        "Máscara de CPU(s) on-line", "Mask för aktiva CPU(er)", "Çevrimiçi işlemci(ler) maskesi", "Маска робочих ЦП",
        "Mặt nạ CPU trực tuyến", "在线 CPU 掩码",
    ),
    "threads": (
        "Thread(s) per core", "Vláken na jádro", "Tråde per kerne", "Thread(s) pro Kern",
        "Hilo(s) de procesamiento por núcleo", "Thread(s) par cœur", "Dretva po jezgri", "コアあたりのスレッド数",
        "Draden per kern", "Wątków na rdzeń", "Tópicos por núcleo", "Thread(s) per núcleo", "Tråd(ar) per kärna",
        "Çekirdek başına iş parçacığı", "Потоків на ядро", "Số tuyến mỗi lõi", "每个核的线程数", "每核心執行緒數",
    ),
    "cores": (
        "Core(s) per socket", "Kern(e) pro Socket", "Jader na patici", "Kerner per sokkel", "Kern(e) pro Sockel",
        "Núcleo(s) por «socket»", "Cœur(s) par socket", "Jezgra po podnožju", "ソケットあたりのコア数", "Kernen per voet",
        "Rdzeni na gniazdo", "Núcleos por socket", "Núcleo(s) por soquete", "Ядер на сокет", "Kärn(or) per uttag",
        "Soket başına çekirdek", "Số lõi mỗi đế cắm", "每个座的核数", "每通訊端核心數",
    ),
    "sockets": (
        "Socket(s)", "CPU socket(s)", "Patic", "Sokler", "Sockel", "«Socket(s)»", "CPU podnožja", "ソケット数",
        "CPU-voeten", "Gniazd", "Sockets", "Soquete(s)", "Сокетов", "Uttag", "Soket(ler)", "Сокети", "Số đế cắm", "座",
    ),
    "nodes": (
        "NUMA node(s)", "Nodo(s) NUMA", "Uzly NUMA", "NUMA-knuder", "NUMA-Knoten", "Modo(s) NUMA", "Nœud(s) NUMA",
        "NUMA čvor(ovi)", "NUMA ノード数", "NUMA-nodes", "Węzłów NUMA", "Nós NUMA", "Nó(s) de NUMA", "NUMA nod(er)",
        "NUMA düğümü(leri)", "Вузли NUMA", "Nút NUMA", "NUMA 节点", "NUMA 節點",
    ),
    "model": (
        "Model name", "Název modelu", "Modelnavn", "Modellname", "Nombre del modelo", "Nom de modèle", "Ime modela",
        "モデル名", "Modelnaam", "Nazwa modelu", "Nome do modelo", "Имя модели", "Modellnamn", "Modem ismi",
        "Назва моделі", "Tên mô hình", "型号名称",
    ),
    "vendor": (
        "Vendor ID", "ID výrobce", "Leverandør-id", "Anbieterkennung", "ID de fabricante", "Identifiant constructeur",
        "ID proizvođača", "ベンダー ID", "Producent-ID", "ID producenta", "ID de fornecedor", "ID прроизводителя",
        "Tillverkar-ID", "Sağlayıcı Kimliği", "Ідентифікатор виробника", "ID nhà sản xuất", "厂商 ID", "供應商識別號",
    ),
    "hypervisor": (
        "Hypervisor vendor", "Výrobce hypervizoru", "Hypervisorleverandør", "Hypervisor-Anbieter",
        "Fabricante del hipervisor", "Constructeur d'hyperviseur", "Proizvođač hipervizora", "ハイパーバイザのベンダー",
        "Hypervisorproducent", "Producent hipernadzorcy", "Fornecedor do hipervisor", "Fabricante do hipervisor",
        "Разработчик гипервизора", "Hypervisortillverkare", "Hypervizör sağlayıcı", "Виробник гіпервізора",
        "Nhà cung cấp bộ ảo hóa", "超管理器厂商", "Hypervisor 供應商",
    ),
    "architecture": (
        "Architecture", "Architektura", "Arkitektur", "Architektur", "Arquitectura", "Arhitektura", "アーキテクチャ",
        "Architectuur", "Arquitetura", "Архитектура", "Mimari", "Архітектура", "Kiến trúc", "架构", "架構",
    ),
}  # fmt: skip

# What the column ONLINE of `lscpu -e` says.
YES = ("yes", "true", "1", "sí", "si", "ano", "ja", "oui", "da", "tak", "sim", "да", "evet", "có", "是")
NO = ("no", "false", "0", "ne", "nej", "nein", "non", "nee", "nie", "não", "нет", "hayır", "không", "否")
